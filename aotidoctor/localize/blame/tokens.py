"""Words of generated C++ and Triton expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:e[-+]?\d+)?)(?:LL|L|ULL|UL|U|f)?(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*)(?:<(?P<types>[\w:, ]*(?:<[\w:, ]*>(?:\(\d+L?\))?[\w:, ]*)*)>(?=\(|::))?"
    r"|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<sign>::|<=|>=|==|!=|&&|\|\||//|[-+*/%<>&|^~!?:()\[\]{},.=]))"
)
LONGEST, _LONGEST_LINE = 8000, 4000


class Unreadable(Exception):  # noqa: N818 (a control-flow signal, caught by the reader)
    """The text is no expression of the kind that the generator writes."""


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is ``number``, ``name``, ``text`` or ``sign``; ``types`` are the template arguments behind a name."""

    kind: str
    text: str
    types: str | None = None


def tokenize(text: str) -> list[Token]:
    """The words of ``text``. Raises ``Unreadable``."""
    if len(text) > LONGEST:
        raise Unreadable
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise Unreadable
        kind = found.lastgroup if found.lastgroup != "types" else "name"
        tokens.append(Token(kind or "", found[kind or 0], found["types"]))
        at = found.end()
    return tokens


def lines_of(text: str, first: int) -> Iterator[tuple[int, str]]:
    """The statements of a kernel that are not too long to be read, by line, of which the first has number ``first``."""
    for number, raw in enumerate(text.split("\n"), first):
        line = raw.strip()
        if line and len(line) < _LONGEST_LINE:
            yield number, line


def mask_of(condition: str) -> str | None:
    """Where the check of ``condition`` counts: ``tmp3`` of ``(tmp1 < 10) | ~(tmp3)``; None: everywhere."""
    _, masked, mask = condition.partition("| ~(")
    return argument(mask) if masked else None


def argument(text: str) -> str:
    """``text`` up to the comma or bracket that ends the first argument of a call."""
    depth = 0
    for at, sign in enumerate(text):
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and sign == ","):
            return text[:at]
    return text
