"""The dynamic loader: glibc's, Apple's dyld, and what ``dlopen`` says through others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, numbered
from aotidoctor.logs.line import Line

START = re.compile(
    r"symbol lookup error|error while loading shared libraries|dyld(?:\[\d+\])?: |undefined symbol|"
    r"cannot open shared object file|version `[^']+' not found|"
    r"Error in dlopen|dlopen\(|invalid ELF header|Symbol not found"
)
_BELOW = re.compile(
    r"^\s+(?:Referenced from|Reason|Expected in|in )|^Referenced from|^\s+Reason: |^\s+'?/.*\((?:no such|not)"
)


def read(lines: Sequence[Line], at: int) -> Found | None:
    """What could not be loaded."""
    end = at + 1
    while end < min(len(lines), at + 8) and _BELOW.search(lines[end].text):
        end += 1
    return Found(form="loader", said=numbered(lines[at:end]), first=at, end=end, stage="load")
