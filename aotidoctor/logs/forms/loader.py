"""The dynamic loader: glibc's, Apple's dyld, and what ``dlopen`` says through others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, end_below, lines_found
from aotidoctor.logs.line import Line

START = re.compile(
    r"symbol lookup error|error while loading shared libraries|dyld(?:\[\d+\])?: |undefined symbol|"
    r"cannot open shared object file|version `[^']+' not found|"
    r"Error in dlopen|dlopen\(|invalid ELF header|Symbol not found"
)
_BELOW = re.compile(
    r"^\s+(?:Referenced from|Reason|Expected in|in )|^Referenced from|^\s+Reason: |^\s+'?/.*\((?:no such|not)"
)
_MOST_BELOW = 8


def read(lines: Sequence[Line], at: int) -> Found | None:
    """What could not be loaded."""
    return lines_found(lines, at, end_below(lines, at, _BELOW, _MOST_BELOW), form="loader", stage="load")
