"""Stacks as debuggers and crash handlers print them: gdb, lldb, glog's and UCX's handlers, the JVM's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.forms.signal import SIGNALS
from aotidoctor.logs.found import Found, numbered
from aotidoctor.logs.line import Line

START = re.compile(
    r"(?:received|terminated with) signal SIG|stop reason = |^#0 +|^\* thread #|Caught signal \d+|"
    r"^\*\*\* (?:Aborted at|SIG\w+|Signal \d+)|\*\*\* Process received signal|# A fatal error has been detected|"
    r"^#  +SIG\w+ \(|^Signal: \w|^==== backtrace|^Stack dump:|^\s+frame #0: 0x"
)
_FRAME = re.compile(
    r"^(?:#\d+ +(?:0x[0-9a-fA-F]+ in )?|\s*(?:\* )?frame #\d+: 0x[0-9a-f]+ |"
    r"\[\s*\d+\] +|\s*@ +(?:0x)?[0-9a-f]{6,16} +|\s*\d+ +0x[0-9a-f]+ )"
    r"(?P<symbol>\S.*)$"
)
_BELOW = re.compile(r"^\s|^->|^\(gdb\)|^\[|^Thread |^libc|^\S+`\S+")
_SIGNAL = re.compile(
    r"\bSIG[A-Z]{3,6}\b|EXC_BAD_ACCESS|EXC_BAD_INSTRUCTION|EXC_CRASH|"
    r"Segmentation fault|Illegal instruction|Aborted|Bus error"
)
_NAMES = {**SIGNALS, "EXC_BAD_ACCESS": "SIGSEGV", "EXC_BAD_INSTRUCTION": "SIGILL", "EXC_CRASH": "SIGABRT"}
_LONGEST, _PATIENCE, _SAID = 400, 6, 8


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The signal and the stack below it."""
    text = lines[at].text
    if text.startswith("#0") and not _FRAME.match(text):
        return None
    frames: list[str] = []
    foreign, here = 0, at
    while here < min(len(lines), at + _LONGEST) and foreign < _PATIENCE:
        frame = _FRAME.match(lines[here].text)
        if frame is not None:
            if lines[here].text.startswith("#0 ") and frames:
                break
            frames.append(frame["symbol"])
            foreign = 0
        elif here > at:
            foreign += 0 if _BELOW.match(lines[here].text) and frames else 1
        here += 1
    end = max(here - foreign, at + 1)
    said = [lines[at], *(line for line in lines[at + 1 : end] if _SIGNAL.search(line.text))][:_SAID]
    signal = next((found[0] for line in said if (found := _SIGNAL.search(line.text))), "")
    return Found(
        form="debugger",
        kind=_NAMES.get(signal, signal),
        said=numbered(said),
        first=at,
        end=end,
        frames=tuple(frames),
    )
