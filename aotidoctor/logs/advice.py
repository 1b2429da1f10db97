"""What to run next: the shortest way from what a log leaves open to an answer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from aotidoctor.model.log import LogEvent, LogReading

_CUDA = re.compile(r"illegal memory access|misaligned address|device-side assert|unspecified launch failure|CUDA error")
_API = re.compile(r"API call failed at ")
_DEATHS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
_MOST = 4


def next_steps(reading: LogReading, *, package: str | None, inputs: str | None = None) -> tuple[str, ...]:
    """Commands and settings, the most telling first."""
    events = reading.unknown or reading.events
    model, sample = _word(package or "model.pt2"), _word(inputs or "sample.pt")
    steps = [step for rule in _RULES for step in rule(events, model)]
    if events and package is None:
        log = "LOG" if reading.name in ("", "stdin") else _word(reading.name)
        steps.append(f"aotidoctor classify {log} --package {model}   # kernels, wrapper lines and symbols by name")
    if events:
        steps.append(f"aotidoctor run {model} --inputs {sample}   # reproduce it, and find the cause by experiment")
    return tuple(dict.fromkeys(steps))[:_MOST]


def _word(path: str) -> str:
    """``path`` as a shell takes it, and as no option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def _device(events: Sequence[LogEvent], _model: str) -> list[str]:
    """A CUDA error shows at a later, innocent call."""
    if not any(_CUDA.search(event.text) for event in events):
        return []
    return [
        "CUDA_LAUNCH_BLOCKING=1 in a fresh process: the error is then reported at the kernel that caused it",
        "AOTI_RUNTIME_CHECK_INPUTS=1 in a fresh process: the package then checks dtypes, shapes and devices",
    ]


def _died(events: Sequence[LogEvent], model: str) -> list[str]:
    if not any(event.kind in _DEATHS and not event.frames for event in events):
        return []
    return [f"aotidoctor watch -- PROGRAM --model {model}   # the same program, with a stack when it crashes"]


def _cut(events: Sequence[LogEvent], _model: str) -> list[str]:
    if not any(event.kind == "truncated" for event in events):
        return []
    return ["provide the rest of the log: a traceback ends before its exception"]


def _wrapped(events: Sequence[LogEvent], _model: str) -> list[str]:
    if not any(_API.search(event.text) for event in events):
        return []
    return ["keep stderr as well (2>&1): releases of torch before 2.13 print the reason there, as `Error: ...`"]


def _killed(events: Sequence[LogEvent], _model: str) -> list[str]:
    if not any(event.kind == "SIGKILL" for event in events):
        return []
    return ["dmesg --ctime | grep -i -E 'killed process|out of memory'   # whether memory ran out"]


_RULES = (_wrapped, _device, _died, _killed, _cut)
