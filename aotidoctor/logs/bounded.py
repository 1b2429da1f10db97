"""An expression with an end to each of its repeats, so that a search takes time in proportion to the text.

A pattern for a log says ``.*`` and means "on the same line, not far away". Here each repeat without a bound
gets one by what it repeats; a text that needs more is none that a program printed.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<class>\[\^?\]?(?:\\.|[^\]\\]){0,400}\])|(?P<open>\((?:\?(?:P<\w+>|P=\w+|<?[=!]|[a-zA-Z-]*:|[^)P:]))?)"
    r"|(?P<close>\))|(?P<exact>\{\d{0,9},\d{1,9}\}\??|\{\d{1,9}\}\??)|(?P<repeat>[*+]\??|\{\d{1,9},\}\??)|(?P<plain>.)",
    re.DOTALL,
)
_MOST = {r"\s": 40, r"\d": 40, r"\w": 120, r"[\s\S]": 600, r"[\S\s]": 600}
_USUAL, _GROUP = 300, 20


def bounded(regex: str) -> str:
    """``regex`` with ``{0,300}`` and the like for ``*`` and ``+``."""
    made: list[str] = []
    before = ""
    for token in _TOKEN.finditer(regex):
        text = token[0]
        if token["repeat"] is not None:
            most = _GROUP if before == ")" else _MOST.get(before, _USUAL)
            least = {"*": "0", "+": "1"}.get(text[0]) or text[1:].partition(",")[0]
            text = f"{{{least},{max(most, int(least))}}}{'?' if text.endswith('?') else ''}"
        made.append(text)
        before = text
    return "".join(made)
