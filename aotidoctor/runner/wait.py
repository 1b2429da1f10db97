"""Wait for one child: wake up when it ends, look at its files now and then, stop at its time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from aotidoctor.model.child_protocol import STACKS_SIGNAL
from aotidoctor.runner.output import Output
from aotidoctor.runner.process import Watch, send
from aotidoctor.runner.readout import read_channel

_LOOK_EVERY = 0.1
_BEFORE_WORK = frozenset({"start", "import", "attach"})


def wait_for_end(
    watch: Watch,
    channel: Path,
    *,
    limit: float,
    start_limit: float,
    streams: tuple[Output, ...],
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
            start = _work_began(channel)
            if start is None and time.monotonic() - began >= start_limit:
                return start_limit
            deadline = time.monotonic() + _LOOK_EVERY if start is None else start + limit
            if time.monotonic() >= deadline:
                return limit
    return None


def dump_stacks(watch: Watch) -> None:
    """Let faulthandler write the Python stacks to stderr before the end; native code that hangs does not prevent it."""
    send(watch.pid, STACKS_SIGNAL)
    watch.wait(0.05)


def _work_began(channel: Path) -> float | None:
    return next((at for stage, at in read_channel(channel).entered if stage not in _BEFORE_WORK), None)
