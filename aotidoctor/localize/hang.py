"""Where a process that does not end stands: in an operator, in a compiled kernel, at a lock, or in a library.

Read from the stacks of its threads where a debugger gave them, else from what /proc says of them. Who waits inside an
operator is the operator's affair; a lock is named only where nobody's code stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from aotidoctor.localize.backtrace import Backtrace, Task, Thread
from aotidoctor.localize.culprit import KERNEL, LIBTORCH, OPERATOR, RUNTIME, Culprit, culprit, is_model
from aotidoctor.model.localization import Frame
from aotidoctor.model.record import record

LOCK, LIBRARY = "lock", "library"
SPINS, SLEEPS, WAITS = "runs", "sleeps", "waits for a lock"
_LOCK = re.compile(
    r"futex|lll_lock_wait|pthread_(?:mutex|rwlock|cond|barrier|spin)_\w*|sem_wait|gomp_\w{0,60}(?:barrier|wait|lock)"
    r"|__kmp_\w{0,60}(?:wait|barrier|lock)|^do_wait\b|PyThread_acquire_lock|take_gil|std::(?:mutex|condition_variable)"
)
# How many of the innermost frames may be the waiting itself.
_DEEP = 8
_FUTEX = {"x86_64": ("202", "449"), "aarch64": ("98", "449")}


@record
class Hang:
    """``where`` is None when nothing tells; ``state`` says whether it runs, sleeps or waits for a lock."""

    where: str | None
    state: str | None
    culprit: Culprit | None = None
    frames: tuple[Frame, ...] = ()


def classify(trace: Backtrace, package: Collection[str] = ()) -> Hang:
    """The verdict. Kernels run on many threads: one that still computes keeps the others waiting."""
    main = _main(trace.threads)
    state = _state(trace.tasks, trace.machine)
    if main is None:
        return Hang(where=LOCK if state == WAITS else None, state=state)
    found = culprit(main.frames, package)
    if found.where == KERNEL or _is_at_lock(main.frames):
        computing = _computing(trace.threads, package)
        if computing is not None:
            thread, found = computing
            return Hang(where=KERNEL, state=SPINS, culprit=found, frames=thread.frames)
    where = _where(found, main.frames)
    return Hang(where=where, state=state, culprit=found, frames=main.frames)


def _where(found: Culprit, frames: Sequence[Frame]) -> str | None:
    if found.where == OPERATOR:
        return OPERATOR
    if _is_at_lock(frames):
        return LOCK
    if found.where == KERNEL:
        return KERNEL
    return LIBRARY if found.where in (LIBTORCH, RUNTIME) else None


def _main(threads: Sequence[Thread]) -> Thread | None:
    """The thread that called the model; without such a frame the first one that was started."""
    called = next((thread for thread in threads if any(is_model(frame) for frame in thread.frames)), None)
    told = [thread for thread in threads if thread.tid is not None]
    return called or min(told, key=lambda thread: thread.tid or 0, default=None)


def _computing(threads: Sequence[Thread], package: Collection[str]) -> tuple[Thread, Culprit] | None:
    for thread in threads:
        found = culprit(thread.frames, package)
        if found.where == KERNEL and not _is_at_lock(thread.frames):
            return thread, found
    return None


def _is_at_lock(frames: Sequence[Frame]) -> bool:
    return any(_LOCK.search(frame.function or "") for frame in frames[:_DEEP])


def _state(tasks: Sequence[Task], machine: str | None) -> str | None:
    """Of the first thread, or of any that runs: a main thread may wait for its workers."""
    if not tasks:
        return None
    if any(task.state == "R" for task in tasks):
        return SPINS
    first = min(tasks, key=lambda task: task.tid)
    waits = first.wchan.startswith("futex") or first.call in _FUTEX.get(machine or "", ())
    return WAITS if waits else SLEEPS
