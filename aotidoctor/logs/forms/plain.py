"""Bare lines that say by themselves that something failed: ``Error: ...``, a logger's ERROR, a failed API call."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, message_found
from aotidoctor.logs.line import Line

START = re.compile(
    r"^\s*(?:[Ee]rror|ERROR|FATAL|Fatal|fatal|[Ee]xception)\b ?(?:\[[^\]]*\])?:|"
    r"\bCUDA (?:driver )?error: |API call failed at |"
    r"^\[?(?:ERROR|FATAL|CRITICAL)\b|\bTriton Error \[|\bCUDA out of memory|^(?:FAILED|FAIL)[ :\[]|std::\w+: "
)
_NONE = re.compile(
    r"\b(?:no|0|without) (?:errors?|failures?)\b|\berrors?\s*[=:]\s*(?:0|none|null|false)\b"
    r"|\berrors?\s*[=:]\s*\d{0,9}\.\d{1,12}(?:e-?\d{1,3})?%?$",
    re.IGNORECASE,
)


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The line, with what continues it."""
    if _NONE.search(lines[at].text):
        return None
    return message_found(lines, at, follows="API call failed at " in lines[at].text)
