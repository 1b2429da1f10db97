"""Packages that some tests need: imported by the tests that use them, not by every process that collects."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest


class Later:
    """A module that is imported when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        if attribute.startswith("_"):
            # pytest looks whether each name of a module that it collects is a fixture, a class or a mock.
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


def optional(name: str, *, reason: str | None = None) -> Later:
    """The package; the module that asks is skipped with the reason where it is not installed."""
    if find_spec(name) is None:
        pytest.skip(reason or f"{name} is not installed", allow_module_level=True)
    return Later(name)


def needs(name: str, *, reason: str | None = None) -> pytest.MarkDecorator:
    """The mark of a test that needs the package where the others of its module do not: skipped with the reason."""
    return pytest.mark.skipif(find_spec(name) is None, reason=reason or f"{name} is not installed")
