"""What to run next: the shortest way from what a log leaves open to an answer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from aotidoctor.model.log import LogEvent, LogReading

_CUDA = re.compile(r"illegal memory access|misaligned address|device-side assert|unspecified launch failure|CUDA error")
_API = re.compile(r"API call failed at ")
_DEATHS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
_MOST = 4
# Of which failures one is enough, and the steps then.
_RULES: tuple[tuple[Callable[[LogEvent], bool], tuple[str, ...]], ...] = (
    (
        lambda event: _API.search(event.text) is not None,
        ("keep stderr as well (2>&1): releases of torch before 2.13 print the reason there, as `Error: ...`",),
    ),
    (
        # It shows at a later, innocent call.
        lambda event: _CUDA.search(event.text) is not None,
        (
            "CUDA_LAUNCH_BLOCKING=1 in a fresh process: the error is then reported at the kernel that caused it",
            "AOTI_RUNTIME_CHECK_INPUTS=1 in a fresh process: the package then checks dtypes, shapes and devices",
        ),
    ),
    (
        lambda event: event.kind in _DEATHS and not event.frames,
        ("aotidoctor watch -- PROGRAM --model {model}   # the same program, with a stack when it crashes",),
    ),
    (
        lambda event: event.kind == "SIGKILL",
        ("dmesg --ctime | grep -i -E 'killed process|out of memory'   # whether memory ran out",),
    ),
    (
        lambda event: event.kind == "truncated",
        ("provide the rest of the log: a traceback ends before its exception",),
    ),
)


def next_steps(reading: LogReading, *, package: str | None, inputs: str | None = None) -> tuple[str, ...]:
    """Commands and settings, the most telling first."""
    events = reading.unknown or reading.events
    model, sample = _word(package or "model.pt2"), _word(inputs or "sample.pt")
    asked = [step for is_one, steps in _RULES if any(map(is_one, events)) for step in steps]
    steps = [step.format(model=model) for step in asked]
    if events and package is None:
        log = "LOG" if reading.name in ("", "stdin") else _word(reading.name)
        steps.append(f"aotidoctor classify {log} --package {model}   # kernels, wrapper lines and symbols by name")
    if events:
        steps.append(f"aotidoctor run {model} --inputs {sample}   # reproduce it, and find the cause by experiment")
    return tuple(dict.fromkeys(steps))[:_MOST]


def _word(path: str) -> str:
    """``path`` as a shell takes it, and as no option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)
