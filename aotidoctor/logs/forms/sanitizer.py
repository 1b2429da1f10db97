"""Sanitizers: ASan, UBSan, TSan, LSan, MSan, NVIDIA's compute-sanitizer and its predecessor, valgrind."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, lines_found, numbered
from aotidoctor.logs.line import Line

START = re.compile(
    r"==\d+==\s*(?:ERROR|WARNING): \w+Sanitizer|WARNING: \w+Sanitizer|^(?:Thread|Memory|Address|Leak)Sanitizer: [a-z]|"
    r": runtime error: |^=========|SUMMARY: \w+Sanitizer|"
    r"^==\d+== (?:Invalid (?:read|write)|Process terminating|Conditional jump|Use of uninit)"
)
_TOOL = re.compile(r"(?:(?:ERROR|WARNING): |^)(?P<tool>\w+Sanitizer): ?(?P<kind>[\w-]*)")
_CUDA = re.compile(r"^=========\s+(?:Invalid|Program hit|Uninitialized|Misaligned|Race|Barrier|Out-of-range|Error)")
_FRAME = re.compile(
    r"^(?:\s*#\d+ (?:0x[0-9a-f]+ )?(?:in )?|=========\s+(?:at|in) |==\d+==\s+(?:at|by) 0x[0-9A-F]+: )(?P<symbol>.+)$"
)
_END = re.compile(r"^SUMMARY: |^=========\s*(?:ERROR SUMMARY.*)?$")
_LONGEST, _SAID = 300, 10


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The first complaint and its stack."""
    text = lines[at].text
    tool, cuda = _TOOL.search(text), _CUDA.match(text)
    if text.startswith("SUMMARY: "):
        return lines_found(lines, at, at + 1, form="sanitizer", follows=True)
    if tool is None and cuda is None and ": runtime error: " not in text and not text.startswith("==", 0, 2):
        return None
    if text.startswith("=========") and cuda is None:
        return None
    if ": runtime error: " in text:
        return lines_found(lines, at, at + 1, form="sanitizer", kind="UBSan")
    kind = f"{tool['tool']} {tool['kind']}".strip() if tool is not None else "compute-sanitizer" if cuda else "valgrind"
    frames, said, end = _stack(lines, at)
    return Found(form="sanitizer", kind=kind, said=numbered(said), first=at, end=end, frames=tuple(frames))


def _stack(lines: Sequence[Line], at: int) -> tuple[list[str], list[Line], int]:
    frames: list[str] = []
    said = [lines[at]]
    for here in range(at + 1, min(len(lines), at + _LONGEST)):
        text = lines[here].text
        if _END.match(text) or (START.search(text) and not text.startswith("=========     ")):
            return frames, said, here + 1 if text.startswith("SUMMARY") else here
        frame = _FRAME.match(text)
        if frame is not None:
            frames.append(frame["symbol"])
        elif text and len(said) < _SAID:
            said.append(lines[here])
    return frames, said, min(len(lines), at + _LONGEST)
