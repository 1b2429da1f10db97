"""A record that some logger calls an error, whatever program's it is and whatever it says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, message_found
from aotidoctor.logs.harmless import telling_part
from aotidoctor.logs.levels import level_of
from aotidoctor.logs.line import Line
from aotidoctor.logs.lines import decoded

# What the level of an error begins with; where it stands, ``levels`` knows.
START = re.compile(
    r"(?i:err|eror|crit|fatal|severe|panic|emerg|alert|fail|ftl|fehler)|^<[0-9]|[EFCA][/\]) \t\d]|PRIORITY"
    r"|level\"\s?:\s?[56]0"
)
_WORD = re.compile(r"[^\W\d_]{3}")
_HEAD = 1000


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The record, with what continues it."""
    line = lines[at]
    if line.level in ("info", "warning", "doubtful"):
        return None
    # The time before it tells that it is a record; it was taken off.
    level = level_of(line.text) or level_of(decoded(line.raw[:_HEAD]))
    if level != "error" or _WORD.search(telling_part(line.text)) is None:
        return None
    return message_found(lines, at)
