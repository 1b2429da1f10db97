"""Linkers: GNU ld, lld, mold, Apple's ld, and the tools around them (nm, objcopy, ar)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, end_below, lines_found
from aotidoctor.logs.line import Line

START = re.compile(
    r"undefined reference to|\bld(?:\.\w+)?: |ld64?\.lld: |mold: (?:fatal|error)|collect2: |relocation truncated|"
    r"Undefined symbols? for|symbol\(s\) not found|\bnm: |objcopy: |\bar: |LNK\d{4}|ld returned \d|"
    r"linker command failed|duplicate symbol|undefined symbol: .{0,400}\n?>>>"
)
_FOLLOWS = re.compile(r"collect2: error|ld returned \d|linker command failed|symbol\(s\) not found for architecture")
_ERROR = re.compile(
    r"undefined reference to|relocation truncated|cannot find|error|fatal|truncated|malformed|failed|Undefined symbol|"
    r"undefined symbol|skipping incompatible|not found|No space|overflow|LNK\d{4}|duplicate symbol|multiple definition"
)
_BELOW = re.compile(r'^>>> |^\s+"|^\s{6,}|undefined reference to')
_MOST_BELOW = 12


def read(lines: Sequence[Line], at: int) -> Found | None:
    """What the linker could not do."""
    text = lines[at].text
    follows = _FOLLOWS.search(text) is not None
    if not follows and (not _ERROR.search(text) or ": warning: " in text):
        return None
    end = at + 1 if follows else end_below(lines, at, _BELOW, _MOST_BELOW)
    return lines_found(lines, at, end, form="linker", stage="link", follows=follows)
