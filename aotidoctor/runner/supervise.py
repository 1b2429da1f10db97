"""Supervise one child: wait for its end or its time limit, bound its output, ask a debugger for native stacks.

A limit on file size would send the child a signal, and a pipe would block it: both change what is being observed. So
when an output file takes more than ``LIMIT`` on disk, its beginning is given back to the file system (a hole), while
the child goes on appending: size and tail stay exact. Where the file system knows no holes the file is cut to nothing
instead, its tail and size noted before; what is written between the look and the cut is then not counted.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aotidoctor.model.run import STACKS_SIGNAL, Request
from aotidoctor.runner.child_ending import ProcessWatch, read_channel, send_signal
from aotidoctor.runner.run_dir import RunDir, task_section, worker_process

if TYPE_CHECKING:
    from aotidoctor.runner.gdb import Debugger


# Output streams of the child.
LIMIT = 64 * 1024 * 1024
TAIL = 16 * 1024
_BLOCK = 4096
_SECTOR = 512  # The unit of st_blocks.
# <linux/falloc.h>, since Linux 5.5 for every file system that can punch holes: what fallocate(2) does, reachable
# without native code of our own. struct space_resv: type, whence, start, length, and fields that are not used.
_FS_IOC_UNRESVSP64 = 0x4030582B
_SPACE = "=hh4xqqiI16x"


class ChildOutput:
    """The file of one stream, bounded while the child runs and read after its end."""

    def __init__(self, path: Path, *, limit: int = LIMIT) -> None:
        self._path = path
        self._limit = limit
        self._cut_bytes = 0
        self._cut_tail = b""

    def trim(self) -> None:
        """Give space back if the file takes too much."""
        try:
            found = self._path.stat()
            if found.st_blocks * _SECTOR > self._limit and not _punch(self._path, found.st_size - TAIL):
                tail, size = _read_tail(self._path), self._path.stat().st_size
                os.truncate(self._path, 0)
                self._cut_bytes += size
                self._cut_tail = tail
        except OSError:
            return

    def read(self) -> tuple[str, int]:
        """The last 16 KiB as text, and the size in bytes of all that was written."""
        try:
            size = self._path.stat().st_size
            tail = _read_tail(self._path)
        except OSError:
            size, tail = 0, b""
        return (self._cut_tail + tail)[-TAIL:].decode("utf-8", "replace"), self._cut_bytes + size


def _punch(path: Path, end: int) -> bool:
    """Make a hole of the file up to ``end``; False where that cannot be done."""
    import fcntl

    with path.open("r+b") as stream:
        try:
            fcntl.ioctl(stream, _FS_IOC_UNRESVSP64, struct.pack(_SPACE, 0, os.SEEK_SET, 0, end - end % _BLOCK, 0, 0))
        except OSError:
            return False
    return True


def _read_tail(path: Path) -> bytes:
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - TAIL))
        return stream.read(TAIL)


# Native stacks of one run.
MAX_OUTPUT = 256 * 1024
# Longer than reading a stack may take: until then a child that died within its time is held by the debugger.
_LAST_WORDS_S = 45.0


class NativeStacks:
    """Stacks of a run by a debugger; ``output`` and ``problem`` become those of its ``Outcome``."""

    def __init__(self, request: Request, run_dir: RunDir, path: str | None) -> None:
        self._wanted = request.debugger or request.stacks
        self._gpu_core = request.gpu_core
        self._run_dir = run_dir
        self._path = path or os.defpath
        self._debugger: Debugger | None = None
        self._output = ""
        self._core = ""
        self._problem: str | None = None
        if request.debugger:
            # Sessions with gdb need modules that other runs should not pay for.
            from aotidoctor.runner.gdb import Debugger

            self._debugger = Debugger(run_dir, self._path)

    @property
    def output(self) -> str:
        """All sections, cut to a size that a report can hold."""
        stacks = self._debugger.output if self._debugger is not None else self._core
        return (self._output + stacks)[:MAX_OUTPUT]

    @property
    def problem(self) -> str | None:
        """The reason why there was no debugger, None when there was one or none was required."""
        return self._debugger.problem if self._debugger is not None else self._problem

    def was_dying(self, watch: ProcessWatch) -> bool:
        """Whether, at the time limit, the child had been stopped by its own signal before and is dead now."""
        return self._debugger is not None and self._debugger.holds.is_set() and watch.wait(_LAST_WORDS_S)

    def look(self, leader: int) -> None:
        """Record where the child is at the time limit. /proc first, since a debugger may wake up what sleeps."""
        pid = worker_process(self._run_dir, leader)
        self._output = task_section(pid)
        if self._debugger is not None and self._debugger.problem is None:
            self._debugger.stacks()
        elif self._wanted and self._debugger is None:
            from aotidoctor.runner.gdb import hang_stacks

            stacks, self._problem = hang_stacks(self._run_dir, pid, self._path)
            self._output += stacks

    def finish(self) -> None:
        """Wait a moment after the end of the child for the debugger's last output."""
        if self._debugger is not None:
            self._debugger.finish()
        if self._gpu_core:
            from aotidoctor.runner.gdb import read_gpu_core

            self._core, self._problem = read_gpu_core(self._run_dir, self._path)

    def close(self) -> None:
        """End the debugger at once: nobody can wait for a process that it still holds."""
        if self._debugger is not None:
            self._debugger.close()


# The wait for the end.
_LOOK_EVERY = 0.1
_BEFORE_WORK = frozenset({"start", "import", "attach"})


class Waiting(Protocol):
    """A process that can be waited for."""

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, after at most ``seconds``."""


def wait_for_end(
    watch: Waiting,
    channel: Path,
    *,
    limit: float,
    start_limit: float,
    streams: tuple[ChildOutput, ...],
    on_stage: Callable[[str], None] | None,
) -> float | None:
    """Wait until the process has ended (None) or a limit is broken (that limit, in seconds).

    ``limit`` counts from the end of importing torch, which has its own ``start_limit``: what the user bounds is the
    model, and a cold disk is not the model's fault.
    """
    began = time.monotonic()
    deadline = began + limit
    while not watch.wait(min(_LOOK_EVERY, max(0.0, deadline - time.monotonic()))):
        for stream in streams:
            stream.trim()
        if on_stage is not None:
            on_stage(read_channel(channel).stage)
        if time.monotonic() >= deadline:
            start = next((at for stage, at in read_channel(channel).entered if stage not in _BEFORE_WORK), None)
            if start is None and time.monotonic() - began >= start_limit:
                return start_limit
            deadline = time.monotonic() + _LOOK_EVERY if start is None else start + limit
            if time.monotonic() >= deadline:
                return limit
    return None


def dump_stacks(watch: ProcessWatch, run_dir: RunDir) -> None:
    """Let faulthandler write the Python stacks to stderr before the end; native code that hangs does not prevent it."""
    send_signal(worker_process(run_dir, watch.pid), STACKS_SIGNAL)
    watch.wait(0.05)
