"""One limit over everything that a static command reads: 3 s of CPU time and 300 MB, the making of the report included.

A timer of CPU time looks every few milliseconds; what takes too long is interrupted where it is (a regular expression,
too) by ``LimitReachedError``. The first time, the stage or check at work is left out and the others go on; what is left
after that has a small allowance each, and in the end the report is made of what is known. Nothing here is hit by
ordinary files: a command takes a tenth of it. What is bigger than 10 MB may take more, in proportion.
"""

from __future__ import annotations

import os
import resource
import signal
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.record import record

CPU_S, MEMORY = 3.0, 300 << 20
ORDINARY = 10 << 20
"""Bytes of input up to which the limits are these."""

_LOOK_S = 0.02
# Shares of the limits: reading and judging may take the first, with what is added at each interruption up to the
# second; the rest is for the report.
_WORK, _ALL_WORK, _MORE = 0.5, 0.6, 0.05
_RENDERED, _REPORT = 0.9, 0.25
_MOST_FILES = 2000
# Python and the modules of a command take less; a program that calls it may hold more by itself.
_START = 64 << 20


@record(kw_only=False, frozen=False)
class _Watchdog:
    """What may be taken from now on, in seconds of CPU time and bytes; ``scale`` 1 stands for ordinary files."""

    scale: float
    seconds: float
    memory: float
    last_seconds: float
    last_memory: float

    def look(self, _number: int, _frame: FrameType | None) -> None:
        """Interrupt what takes too much. Raises LimitReachedError."""
        seconds, memory = _cpu_seconds(), _resident()
        if seconds <= self.seconds and memory <= self.memory:
            return
        megabytes = MEMORY * self.scale / (1 << 20)
        said = f"{CPU_S * self.scale:.0f} s of CPU time" if seconds > self.seconds else f"{megabytes:.0f} MB of memory"
        final = seconds > self.last_seconds or memory > self.last_memory
        if final:
            signal.setitimer(signal.ITIMER_PROF, 0)
        self.seconds = max(self.seconds, seconds + _MORE * CPU_S * self.scale)
        self.memory = max(self.memory, memory + _MORE * MEMORY * self.scale)
        raise LimitReachedError(f"stopped so as to stay within {said}", final=final)

    def grow(self, size: int) -> None:
        """More input has come than was known of: a log on standard input."""
        more = size / ORDINARY
        self.scale += more
        self.seconds += more * CPU_S
        self.last_seconds += more * CPU_S


_ACTIVE: list[_Watchdog] = []
# What the process held before the command: the report is made within the same bounds as the rest.
_BEFORE: list[int] = []


@contextmanager
def limited(paths: Sequence[str] | None = None) -> Iterator[None]:
    """Within: no more than the limits. ``paths`` are read (None: the command's words). Raises LimitReachedError."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    scale = max(1.0, _size(_words() if paths is None else paths) / ORDINARY)
    start, memory, room, held = _cpu_seconds(), MEMORY * scale, CPU_S * scale, _held()
    _BEFORE[:] = [held]
    watchdog = _Watchdog(
        scale=scale,
        seconds=start + _WORK * room,
        memory=held + _WORK * memory,
        last_seconds=start + _ALL_WORK * room,
        last_memory=held + _ALL_WORK * memory,
    )
    with _watching(watchdog):
        yield


@contextmanager
def report_limited(paths: Sequence[str] | None = None) -> Iterator[None]:
    """Likewise for making a report of what is known. Raises LimitReachedError."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    scale = max(1.0, _size(_words() if paths is None else paths) / ORDINARY)
    seconds, memory = _cpu_seconds() + _REPORT * CPU_S * scale, sum(_BEFORE) + _RENDERED * MEMORY * scale
    with _watching(_Watchdog(scale, seconds, memory, 0.0, 0.0)):
        yield


@contextmanager
def _watching(watchdog: _Watchdog) -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, watchdog.look)
    _ACTIVE.append(watchdog)
    signal.setitimer(signal.ITIMER_PROF, _LOOK_S, _LOOK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        _ACTIVE.remove(watchdog)


def came(size: int) -> None:
    """So many bytes came from a stream whose size nobody knew."""
    for watchdog in _ACTIVE:
        watchdog.grow(size)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _resident() -> int:
    """Bytes of memory that are not a file's. 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as stream:  # noqa: PTH123 - asked fifty times a second
            pages = stream.read().split()
    except OSError:
        return 0
    return (int(pages[1]) - int(pages[2])) * resource.getpagesize()


def _held() -> int:
    """What a process that does more than this command held before it; next to nothing for one that does not."""
    held = _resident()
    return held if held > _START else 0


def _words() -> list[str]:
    return [part for word in sys.argv[1:] for part in (word, word.partition("=")[2]) if part]


def _size(paths: Sequence[str]) -> int:
    """Bytes of the files that ``paths`` name, and of those in the folders among them."""
    total = 0
    for path in paths:
        with suppress(OSError, ValueError):
            status = os.stat(path)  # noqa: PTH116 - no ValueError of pathlib's
            total += _inside(path) if stat.S_ISDIR(status.st_mode) else status.st_size
    return total


def _inside(folder: str) -> int:
    total = seen = 0
    for place, _, names in os.walk(folder):
        for name in names[:_MOST_FILES]:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - likewise
        seen += len(names) + 1
        if seen > _MOST_FILES:
            break
    return total
