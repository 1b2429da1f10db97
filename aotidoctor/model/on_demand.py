"""Public names that are imported when they are first asked for.

A stage's ``__init__`` lists what others may use of it; a command then pays for what it does use. Type checkers read the
imports below ``TYPE_CHECKING``, this reads the same places at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def names_of(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of ``package``: each name by its place, ``module:name`` below the package."""

    def __getattr__(name: str) -> object:  # noqa: N807 - the module's
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = places[name].partition(":")
        return getattr(import_module(f"{package}.{module}"), attribute or name)

    return __getattr__
