"""Define the vocabulary that every stage shares: frozen records. Standard library only, no I/O.

Stages (artifact, contract, inputs, host, checks, probes, runner, diagnosis, reports) import these modules and never
each other. Here are only the two tools of lazy loading, which every stage may import at no cost: names of a package
that are imported at their first use, and regular expressions that are compiled at their first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module


def names_of(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of ``package``: each name by its place, ``module:name`` below the package."""

    def __getattr__(name: str) -> object:  # noqa: N807 - the module's
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = places[name].partition(":")
        return getattr(import_module(f"{package}.{module}"), attribute or name)

    return __getattr__


class LatePattern:
    """What ``re.compile(text)`` gives, later."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The expression itself."""
        return re.compile(self.text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As of ``re.Pattern``."""
        return self.compiled.fullmatch(text)
