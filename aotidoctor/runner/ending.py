"""Wait status + what the child told + what we did to it -> ``Ending``."""

from __future__ import annotations

import os
import signal

from aotidoctor.model.child_protocol import NO_CHANNEL
from aotidoctor.model.fault import FAILED_HERE, OwnCodeError
from aotidoctor.model.record import record
from aotidoctor.model.records import RecordError
from aotidoctor.model.run import Ending, Exited, NotStarted, OutOfMemory, Signalled, TimedOut
from aotidoctor.runner.readout import Readout

# Exceptions before a job began that are our own.
_WHY = {
    RecordError.__name__: f"{FAILED_HERE}: the request could not be read",
    OwnCodeError.__name__: f"{FAILED_HERE}: a part of it could not be imported",
}


@record
class End:
    """How a process ended: its wait status (None: unknown), peak memory in bytes, and who made it end.

    ``limit`` is the time limit that it broke, ``oom`` what the kernel's counters say, both None otherwise.
    """

    status: int | None
    peak_rss: int | None = None
    limit: float | None = None
    oom: str | None = None


def classify(end: End, readout: Readout) -> Ending:
    """Name the ending. A kill by the time limit is ``TimedOut`` whatever the status says."""
    if end.limit is not None:
        return TimedOut(limit=end.limit)
    if end.status is None:
        return NotStarted(reason="the exit status was lost: a different part of this program waits for all children")
    if os.WIFSIGNALED(end.status):
        return _signalled(end, os.WTERMSIG(end.status))
    code = os.WEXITSTATUS(end.status)
    if readout.fatal is not None:
        why = _WHY.get(readout.fatal.type, "torch could not be imported")
        return NotStarted(reason=f"{why}: {readout.fatal.type}: {readout.fatal.message}")
    if code == NO_CHANNEL and not readout.done:
        return NotStarted(reason="the worker could not report (no room or no permission for its files)")
    return Exited(code=code, done=readout.done)


def _signalled(end: End, number: int) -> Ending:
    if number == signal.SIGKILL and end.oom is not None:
        return OutOfMemory(reason=end.oom)
    core = end.status is not None and os.WCOREDUMP(end.status)
    return Signalled(signal=number, name=_name(number), core_dumped=core)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
