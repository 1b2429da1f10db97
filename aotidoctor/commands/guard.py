"""Triage a failure inside a Python program, as ``watch`` does from outside (``aotidoctor.guard()``).

    with aotidoctor.guard(inputs=(ids, mask), report="md:crash.md"):
        model(ids, mask)

An exception leaves the block unchanged, after a report on it was written and its first screen printed. A crash by a
signal still ends the process by that signal: another process, which starts with the block, then reports on it. Errors
in here do not reach the program, and torch is not imported.
"""

from __future__ import annotations

import faulthandler
import functools
import inspect
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TextIO, TypeVar, cast

if TYPE_CHECKING:
    from types import TracebackType

    from aotidoctor.runner.helper_processes import Monitor

P = ParamSpec("P")
R = TypeVar("R")
# Seconds that a failing program waits for its report.
PATIENCE_S = 120.0
# Attribute of an exception that was reported; its ``id`` may be that of a later one.
_REPORTED = "_aotidoctor_reported"


class guard:  # noqa: N801 - it is used like a function
    """Context manager and decorator that report on a failure.

    ``inputs`` are those of the call: a path, or the objects themselves (a tuple or list of args, a dict of kwargs,
    ``{"args": ..., "kwargs": ...}``, or one tensor). Without them, those of the package's call that raised are used.
    ``report`` is ``FMT:PATH`` or several of them. ``package`` is the .pt2 file, if the open files do not show it.
    ``quiet`` prints nothing, ``redact`` hides private data.
    """

    def __init__(
        self,
        inputs: object = None,
        *,
        report: str | Sequence[str] = (),
        package: str | os.PathLike[str] | None = None,
        quiet: bool = False,
        redact: bool = True,
    ) -> None:
        self._inputs = inputs
        self._reports: list[str] = []
        for spec in [report] if isinstance(report, str) else report:
            kind, colon, path = spec.partition(":")
            if not colon or not path:
                raise ValueError(f"{spec!r} is not FMT:PATH, such as md:crash.md")
            self._reports.append(f"{kind}:{_absolute(path)}")
        self._package = None if package is None else _absolute(package)
        self._quiet = quiet
        self._redact = redact
        self._monitor: Monitor | None = None
        self._room: tempfile.TemporaryDirectory[str] | None = None
        self._faults: TextIO | None = None

    def __enter__(self) -> guard:  # noqa: PYI034 - typing.Self is new in Python 3.11
        """Start to monitor the block."""
        with suppress(Exception):
            # Imported only here: a program that never enters a block does not pay for it.
            from aotidoctor.runner.helper_processes import Monitor

            self._room = tempfile.TemporaryDirectory(prefix="aotidoctor-guard-")
            self._monitor = Monitor()
            faults = Path(self._room.name) / "faults"
            if not faulthandler.is_enabled():
                # If it is enabled, the program wants its output elsewhere.
                self._faults = faults.open("w", encoding="utf-8")
                faulthandler.enable(file=self._faults)
            cwd = "/"
            with suppress(OSError):
                cwd = str(Path.cwd())
            self._monitor.tell(
                {
                    "pid": os.getpid(),
                    "room": self._room.name,
                    "argv": list(sys.argv),
                    "reports": self._reports,
                    "package": self._package,
                    "inputs": _path_of(self._inputs),
                    "quiet": self._quiet,
                    "redact": self._redact,
                    "cwd": cwd,
                }
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Report on an exception, which leaves the block unchanged."""
        # A user may interrupt the wait, and gets the program's own exception then.
        with suppress(BaseException):
            if error is not None and is_failure(error) and _REPORTED not in vars(error):
                vars(error)[_REPORTED] = True
                self._report(error)
        with suppress(BaseException):
            if self._faults is not None:
                faulthandler.disable()
                self._faults.close()
                self._faults = None
            if self._monitor is not None:
                with suppress(OSError):
                    self._monitor.tell({"done": True})
                self._monitor.close()
                self._monitor = None
            if self._room is not None:
                self._room.cleanup()
                self._room = None

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each call is a block of its own."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def waiting(*args: P.args, **kwargs: P.kwargs) -> object:
                with self._copy():
                    return await function(*args, **kwargs)

            return cast("Callable[P, R]", waiting)

        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._copy():
                return function(*args, **kwargs)

        return guarded

    def _copy(self) -> guard:
        return guard(self._inputs, report=self._reports, package=self._package, quiet=self._quiet, redact=self._redact)

    def _report(self, error: BaseException) -> None:
        if self._monitor is None or self._room is None:
            return
        status = None
        if isinstance(error, SystemExit):
            status = error.code & 0xFF if isinstance(error.code, int) else 1
        live = None
        inputs = failing_call(error) if self._inputs is None else self._inputs
        if inputs is not None and _path_of(inputs) is None:
            with suppress(Exception):
                from aotidoctor.commands.live_inputs import pack_inputs

                live = pack_inputs(inputs)
        self._monitor.tell(
            {
                "raised": "".join(traceback.format_exception(type(error), error, error.__traceback__)),
                "type": type(error).__qualname__,
                "status": status,
                "live": live,
            }
        )
        self._monitor.wait(PATIENCE_S)


def is_failure(error: BaseException) -> bool:
    """Whether the exception is a failure: not an interrupt, not an orderly exit."""
    if isinstance(error, SystemExit):
        return error.code not in (None, 0)
    return isinstance(error, Exception)


def failing_call(error: BaseException) -> tuple[tuple[object, ...], dict[str, object]] | None:
    """The arguments of the package's call that raised the exception, from the innermost such frame."""
    from aotidoctor.worker.recorder.sitecustomize import MODULES

    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == "__call__" and frame.f_globals.get("__name__") in MODULES:
            found = frame.f_locals.get("args"), frame.f_locals.get("kwargs")
    if found is None or not isinstance(found[0], tuple) or not isinstance(found[1], dict):
        return None
    return found[0], found[1]


def _path_of(inputs: object) -> str | None:
    return _absolute(inputs) if isinstance(inputs, (str, os.PathLike)) else None


def _absolute(path: str | os.PathLike[str]) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - pathlib keeps ".." in a path
