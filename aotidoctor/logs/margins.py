"""Margins that people and tools put before a whole block of lines: quotes, comment signs, boxes, indents.

What stands in the same column of every line of a block belongs to none of them. A margin is taken off where a failure
then begins at the first column; elsewhere an indent is part of the text: of a stack, of a source line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from aotidoctor.logs.line import Line
from aotidoctor.logs.prefixes import bare

# A sign of a quote or of a comment, and what frames a box.
_SIGN = re.compile(r"(?P<sign>#|//|\*|;|--|%|>|\||\u2502|\u2503|\u2551|dnl|REM)(?: |\t|$)")
_BOX = re.compile(r"(?:(?<!\s)\s+)?[|\u2502\u2503\u2551]\s*$")
# How a failure begins, at the first column.
_BEGINS = re.compile(
    r"Traceback \(most recent|(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt)\b(?::|$|\s+Traceback)|"
    r"terminate called|Fatal Python error|\w+: (?:fatal )?error|(?i:error|fatal)\b|Exception raised from|"
    r"\S+?:\d+(?::\d+)?: (?:fatal )?error|\S+\(\d+\): (?:fatal )?error|Assertion|Segmentation fault|Aborted|Killed|"
    r"\[rank\d|\[?[IWEF]\d{4} |\d{4}-\d\d-\d\d|#0 |dyld|ld(?:\.\w+)?: |/\S+\.(?:so|dylib|cpp|cu|o)[\w.]{0,40}: "
)
# The JVM prints its crash as a comment; so do gdb its frames and a shell its prompt.
_OWN = re.compile(r"# A fatal error has been detected|#\s+SIG[A-Z]+ \(")
_DEPTH = 3


def without_margins(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines of one stream, each block without its margin."""
    if not any(line.text[:1] in _FIRST for line in lines):
        return lines
    for _ in range(_DEPTH):
        made = [line for block in _blocks(lines) for line in _freed(block)]
        if all(before is after for before, after in zip(lines, made, strict=True)):
            return made
        lines = made
    return lines


_FIRST = frozenset(" \t#/*;-%>|\u2502\u2503\u2551dR")


def _blocks(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Runs of lines with the same kind of margin; blank lines stay with what is before them."""
    start, margin = 0, ""
    for at, line in enumerate(lines):
        if not line.text:
            continue
        own = _margin(line.text)
        if own != margin:
            if at > start:
                yield lines[start:at]
            start, margin = at, own
    yield lines[start:]


def _margin(text: str) -> str:
    if text[0] in " \t":
        return " "
    sign = _SIGN.match(text)
    return sign["sign"] if sign is not None else ""


def _freed(block: Sequence[Line]) -> Sequence[Line]:
    margin = _margin(next((line.text for line in block if line.text), "x"))
    if margin == "":
        return block
    cut = min(len(line.text) - len(line.text.lstrip()) for line in block if line.text) if margin == " " else len(margin)
    texts = [_inside(line.text, cut, margin) for line in block]
    if not any(_begins(text) for text in texts) or any(_OWN.match(line.text) for line in block):
        return block
    return [_told(line, text) for line, text in zip(block, texts, strict=True)]


def _begins(text: str) -> bool:
    """Whether a failure, or a logger's record, begins with ``text``."""
    if not text or text[0].isspace():
        return False
    return _BEGINS.match(text) is not None or bare(text).stamped


def _inside(text: str, cut: int, margin: str) -> str:
    inner = text[cut:]
    if margin == " ":
        return inner
    inner = inner.removeprefix(" ")
    return _BOX.sub("", inner) if margin in "|\u2502\u2503\u2551" else inner


def _told(line: Line, text: str) -> Line:
    """The line with ``text``, of which a logger's prefix is taken off as well."""
    if not text or text[0].isspace():
        return replace(line, text=text)
    inner = bare(text)
    return replace(
        line, text=inner.text.rstrip(), level=inner.level or line.level, stamped=inner.stamped or line.stamped
    )
