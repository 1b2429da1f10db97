"""Wait for a process, kill it with all that it started, and classify how it ended.

The process may be a child of somebody else. What it reported before it ended stands in its side channel. That file is
data from a process that may have been damaged: lines that are no record are counted, never raised. Wait status,
readout and what we did to the process together give the ``Ending``.
"""

from __future__ import annotations

import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from aotidoctor import interruption
from aotidoctor.model.evidence import FAILED_HERE, OwnCodeError
from aotidoctor.model.record import JsonObject, JsonValue, record
from aotidoctor.model.record_json import RecordError
from aotidoctor.model.run import (
    NO_CHANNEL,
    RUN_VARIABLE,
    ChildError,
    Ending,
    Exited,
    NotStarted,
    OutOfMemory,
    Signalled,
    TimedOut,
)
from aotidoctor.runner.processes import has_ended, read_link, read_proc

# A process in the middle of execve shows no environment: that much later, on a busy machine too, it does.
_LOOKS = 10


class ProcessWatch:
    """Waits for the end of process ``pid`` without reaping it. The process must not have been reaped before."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._fd: int | None = os.pidfd_open(pid)
        except (OSError, AttributeError):
            self._fd = None

    def close(self) -> None:
        """Close the descriptor."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def wait(self, seconds: float) -> bool:
        """Whether the process has ended, after at most ``seconds``."""
        if self._fd is None:
            # Kernels without pidfd: before 5.3, and some sandboxes.
            deadline = time.monotonic() + seconds
            while not (ended := has_ended(self.pid)) and time.monotonic() < deadline:
                time.sleep(0.005)
            return ended
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Hold requests to end until the end of the block: one in the middle of cleaning up would leave the rest undone."""
    came: list[int] = []
    handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
    # Only the main thread may change handlers, and one that C installed could not be put back.
    if threading.current_thread() is threading.main_thread():
        for number in map(int, interruption.NUMBERS):
            if callable(handler := signal.getsignal(number)):
                handlers[number] = handler
                signal.signal(number, lambda this, _frame: came.append(this))
    try:
        # Nor is one raised here that came before, and that a finalizer swallowed.
        with interruption.held():
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            handlers[came[0]](came[0], None)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to one process; one that is gone is fine."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_all(leader: int, token: str) -> int:
    """Kill the leader, its process group, and what left the group but still carries the run's marker.

    Returns the number of processes found outside the group. Call it while the leader is alive or a zombie, so that its
    number is still its own.
    """
    send_signal(leader, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    found: set[int] = set()
    # A few rounds: one that is being killed may just have forked.
    for _ in range(5):
        strays = [pid for pid in find_marked(token, after=leader) if pid != leader and not has_ended(pid)]
        if not strays:
            break
        found.update(strays)
        for pid in strays:
            send_signal(pid, signal.SIGKILL)
        time.sleep(0.002)
    return len(found)


def find_marked(token: str, *, after: int = 0) -> list[int]:
    """Processes whose initial environment carries the marker. ``after`` (a pid) saves looking at older processes."""
    marker = f"{RUN_VARIABLE}={token}".encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    with suppress(OSError, ValueError, IndexError):
        # The number given out last is smaller than the leader's when the numbers have wrapped round since.
        if int(Path("/proc/loadavg").read_text(encoding="ascii").split()[-1]) >= after:
            pids = [pid for pid in pids if pid > after]
    found: list[int] = []
    for _ in range(_LOOKS):
        environs = {pid: read_proc(f"/proc/{pid}/environ") for pid in pids}
        found += [pid for pid, environ in environs.items() if marker in environ.split(b"\0")]
        # Neither a thread of the kernel nor one that has ended.
        pids = [
            pid
            for pid, environ in environs.items()
            if not environ and (read_link(f"/proc/{pid}/exe") is not None and not has_ended(pid))
        ]
        if not pids:
            break
        time.sleep(0.002)
    return found


# The side channel.
_MAX_CHANNEL_BYTES = 64 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class ChannelReadout:
    """The content of the channel. ``entered`` are ``(stage, monotonic seconds)`` in order."""

    entered: list[tuple[str, float]] = field(default_factory=list)
    result: JsonObject = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    error: ChildError | None = None
    fatal: ChildError | None = None
    done: bool = False
    ended: float | None = None
    unreadable: int = 0

    @property
    def stage(self) -> str:
        """The stage entered last; ``start`` when the child recorded none."""
        return self.entered[-1][0] if self.entered else "start"

    def remarks(self) -> tuple[str, ...]:
        """Python warnings of the child, and ours about the channel."""
        odd = f"side channel: {self.unreadable} lines were not valid records"
        return (*self.warnings, odd) if self.unreadable else tuple(self.warnings)

    def seconds(self) -> dict[str, float]:
        """Seconds of each finished stage; of one entered several times, the sum."""
        ends = [at for _, at in self.entered[1:]]
        if self.ended is not None:
            ends.append(self.ended)
        sums: dict[str, float] = {}
        for (stage, at), end in zip(self.entered, ends, strict=False):
            sums[stage] = round(sums.get(stage, 0.0) + end - at, 6)
        return sums


def read_channel(path: Path) -> ChannelReadout:
    """Read all records of the file at ``path``; a missing file is an empty readout."""
    readout = ChannelReadout()
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_CHANNEL_BYTES)
    except OSError:
        return readout
    for line in filter(bytes.strip, data.splitlines()):
        try:
            record: JsonValue = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or not _note(record, readout):
            readout.unreadable += 1
    return readout


def _note(record: JsonObject, readout: ChannelReadout) -> bool:
    """Put ``record`` into ``readout``; False when it is none of ours."""
    match record:
        case {"stage": str(stage), "t": int() | float() as at}:
            readout.entered.append((stage, float(at)))
        case {"put": dict(values)}:
            readout.result.update(values)
        case {"warning": str(text)}:
            readout.warnings.append(text)
        case {"error": dict(error)}:
            readout.error, readout.done = child_error(error), True
        case {"fatal": dict(error)}:
            readout.fatal = child_error(error)
        case {"done": True, "t": int() | float() as at}:
            readout.done, readout.ended = True, float(at)
        case {"too_large": int(size)}:
            readout.warnings.append(f"a part of the result was omitted: {size} bytes")
        case _:
            return False
    return True


def child_error(record: JsonObject) -> ChildError:
    """An exception as a child wrote it down."""
    return ChildError(
        type=str(record.get("type", "")),
        message=str(record.get("message", "")),
        traceback=str(record.get("traceback", "")),
    )


# The ending, from wait status and readout. Exceptions before a job began that are our own.
_WHY = {
    RecordError.__name__: f"{FAILED_HERE}: the request could not be read",
    OwnCodeError.__name__: f"{FAILED_HERE}: a part of it could not be imported",
}


@record
class ProcessEnd:
    """The end of a process: its wait status (None: unknown), peak memory in bytes, and who made it end.

    ``limit`` is the time limit that it broke, ``oom`` the kernel's counter that rose; both None otherwise.
    """

    status: int | None
    peak_rss: int | None = None
    limit: float | None = None
    oom: str | None = None


def classify_ending(end: ProcessEnd, readout: ChannelReadout) -> Ending:
    """Name the ending. A kill by the time limit is ``TimedOut`` whatever the status says."""
    if end.limit is not None:
        return TimedOut(limit=end.limit)
    if end.status is None:
        return NotStarted(reason="the exit status was lost: a different part of this program waits for all children")
    if os.WIFSIGNALED(end.status):
        number = os.WTERMSIG(end.status)
        if number == signal.SIGKILL and end.oom is not None:
            return OutOfMemory(reason=end.oom)
        core = os.WCOREDUMP(end.status)
        name = next((one.name for one in signal.Signals if one == number), f"SIG{number}")
        return Signalled(signal=number, name=name, core_dumped=core)
    return exit_ending(os.WEXITSTATUS(end.status), readout)


def exit_ending(code: int | None, readout: ChannelReadout) -> Ending:
    """Name the ending of a process that exited with ``code`` (None: unknown)."""
    if code is None:
        return NotStarted(reason="the process could not be ended, and has no exit status")
    if readout.fatal is not None:
        why = _WHY.get(readout.fatal.type, "torch could not be imported")
        return NotStarted(reason=f"{why}: {readout.fatal.type}: {readout.fatal.message}")
    if code == NO_CHANNEL and not readout.done:
        return NotStarted(reason="the worker could not report (no room or no permission for its files)")
    return Exited(code=code, done=readout.done)
