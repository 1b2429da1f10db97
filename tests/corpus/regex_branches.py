"""Regular expressions by their alternatives: which of them there are, and the expression without some of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_TOKEN = re.compile(
    r"(?P<escape>\\.|\(\?P=\w+\))|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\((?:\?(?:P<\w+>|[aiLmsux-]*:|<?[=!]|#)?)?)"
    r"|(?P<close>\))|(?P<bar>\|)|(?P<plain>.)",
    re.DOTALL,
)
NEVER = "(?!)"
Span = tuple[int, int]


@dataclass(frozen=True)
class Branch:
    """One of several alternatives, or a whole expression. ``refuses``: it stands where a match must not be."""

    span: Span
    siblings: tuple[Span, ...]
    refuses: bool


def branches(regex: str) -> list[Branch]:
    """All alternatives of ``regex``, the inner ones too; lookbehinds are left alone, their width is fixed."""
    found: list[Branch] = []
    # Where the group began, the bars in it, whether it is a lookbehind, whether a match of it must not be.
    stack: list[tuple[int, list[int], bool, bool]] = [(0, [], False, False)]
    for token in _TOKEN.finditer(regex):
        match token.lastgroup:
            case "open":
                behind, refuses = stack[-1][2] or "<=" in token[0] or "<!" in token[0], stack[-1][3]
                stack.append((token.end(), [], behind, refuses or token[0] == "(?!"))
            case "bar":
                stack[-1][1].append(token.start())
            case "close":
                found += _of(*stack.pop(), token.start())
    return [*found, *_of(*stack.pop(), len(regex))]


def _of(start: int, bars: list[int], behind: bool, refuses: bool, end: int) -> list[Branch]:
    spans = tuple(zip([start, *(bar + 1 for bar in bars)], [*bars, end], strict=True))
    is_whole = start == 0 and not refuses
    if behind or (len(spans) == 1 and not is_whole and not refuses):
        return []
    return [Branch(span, tuple(one for one in spans if one != span), refuses) for span in spans]


def without(regex: str, spans: Iterable[Span]) -> str:
    """``regex`` with something that never matches at each of ``spans``."""
    made, last = "", 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start < last:
            continue
        made, last = f"{made}{regex[last:start]}{NEVER}", end
    return made + regex[last:]
