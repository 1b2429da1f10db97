"""Define the vocabulary that every stage shares: frozen records. Standard library only, no I/O.

Stages (artifact, contract, inputs, host, checks, probes, runner, diagnosis, reports) import these modules and never
each other. Here are only the tools of lazy loading, which every stage may import at no cost: names of a package that
are imported at their first use, regular expressions that are compiled at their first use, and the reader of TOML,
whose import takes milliseconds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any


def names_of(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of ``package``: each name by its place, ``module:name`` below the package."""

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = places[name].partition(":")
        return getattr(import_module(f"{package}.{module}"), attribute or name)

    return get


class LatePattern:
    """A regular expression that is compiled at its first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(self.text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """The match of the whole text, as by ``re.Pattern``."""
        return self.compiled.fullmatch(text)


def load_toml(text: str) -> dict[str, Any]:  # type: ignore[explicit-any]  # tables of every form
    """The document as a table. Raises ValueError.

    By the standard library, or for Python 3.10 by the package it was made from.
    """
    if sys.version_info >= (3, 11):
        from tomllib import loads
    else:  # pragma: no cover
        from tomli import loads

    return dict(loads(text))
