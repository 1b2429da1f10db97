"""Compilers: gcc and clang, MSVC, nvcc and ptxas, with the lines of source and the notes below a diagnostic."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, end_below, lines_found
from aotidoctor.logs.line import Line

START = re.compile(
    r"\berror:|\(\d+\)\s*: (?:fatal )?error|^error C\d+|ptxas (?:error|fatal)|nvcc fatal|LLVM ERROR|CMake Error|"
    r"\bfatal error[: ]|redefinition of|was not declared in this scope|^make(?:\[\d+\])?: \*\*\*|^ninja: build stopped|"
    r"^FAILED: \S+\.(?:o|so|obj)\b|compilation terminated|errors? (?:generated|detected in the compilation)"
)
_DIAGNOSTIC = re.compile(
    r"^(?:(?:[A-Za-z]:)?[^:\s(][^:(]*?(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\))\s*: ?(?:fatal )?error\b)|"
    r"^(?:[\w+./-]*(?:g\+\+|gcc|clang(?:\+\+)?|cc1plus|cc1|cl|"
    r"nvcc|icpx?)[\w.-]{0,40}: (?:fatal )?error: )|^(?:fatal )?error: |"
    r"ptxas (?:error|fatal)|nvcc fatal|LLVM ERROR|CMake Error at|^error C\d+|^LINK : fatal error"
)
_FOLLOWS = re.compile(
    r"^make(?:\[\d+\])?: \*\*\*|^ninja: build stopped|^FAILED: |compilation terminated|errors? generated|"
    r"errors? detected in the compilation|linker command failed"
)
_BELOW = re.compile(r"^\s*(?:\d+ )?\| ?|^\s+[\^~]|: note: |^\s{2,}\S|^(?:compilation terminated)")
_MOST_BELOW = 12


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The diagnostic that begins at ``at``."""
    text = lines[at].text
    if _FOLLOWS.search(text):
        return lines_found(lines, at, at + 1, form="compiler", stage="compile", follows=True)
    if not _DIAGNOSTIC.search(text) or "linker" in text or "undefined reference" in text or "ld: " in text:
        return None
    return lines_found(lines, at, end_below(lines, at, _BELOW, _MOST_BELOW), form="compiler", stage="compile")
