"""No test without an end, and none without the stacks of all threads where it hangs.

pytest-timeout (``timeout`` in pyproject.toml) interrupts a test that hangs, and it fails with its stacks. What is here
is for whom that does not reach: a test that goes on all the same or hangs in native code, the tearing down after a
failure, which pytest-timeout gives no limit, and threads that keep Python from ending. The process then writes its
stacks to stderr and ends; where it is a worker of xdist's, the test has failed and the rest is given to another one.

The first test that asks for the compiled models waits until all are there, which on a cold and busy machine takes
longer than a test may: its limit then begins behind its fixtures, and these have an end of their own.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator

import pytest

# On top of the limit of a test.
SPARE_S = 60.0
# For Python to end after the last one: on a busy machine pytest takes more than a minute to remove its folders.
ENDING_S = 300.0
# For the models to be compiled; the fixture has the name ``packages``.
COMPILE_S = 1800.0


class Ends:
    """A plugin: the second limit, of each step of a test by itself."""

    def __init__(self, *, spare: float = SPARE_S, ending: float = ENDING_S, compiling: float = COMPILE_S) -> None:
        self._spare = spare
        self._ending = ending
        self._compiling = compiling
        # While a test is running, its output is captured.
        self._stderr = os.dup(2)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if _compiles(item) and item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(func_only=True))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._limited(item, self._compiling if _compiles(item) else 0.0))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._limited(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._limited(item))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        self._later(self._ending)

    def _limited(self, item: pytest.Item, more: float = 0.0) -> Iterator[None]:
        if limit := limit_of(item):
            self._later(limit + more + self._spare)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _later(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(seconds, file=self._stderr, exit=True)


def _compiles(item: pytest.Item) -> bool:
    return "packages" in getattr(item, "fixturenames", ())


def limit_of(item: pytest.Item) -> float:
    """Seconds that pytest-timeout gives the test; 0 where it is not to end, as for a debugger, or is not installed."""
    config = item.config
    if not config.pluginmanager.hasplugin("timeout") or config.getoption("usepdb"):
        return 0.0
    marker = item.get_closest_marker("timeout")
    if marker is not None and marker.args:
        return float(marker.args[0])
    asked = config.getoption("timeout")
    return float(config.getini("timeout") or 0.0 if asked is None else asked)
