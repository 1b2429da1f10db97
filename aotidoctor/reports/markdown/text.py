"""Text of others inside Markdown: nothing in it can end a fence, open a tag, mention a person or break a table."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from aotidoctor.reports.text import one_line, plain, tail

_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")
# What GitHub links in running text, however it is escaped: @name, #1, GH-1, URLs, hashes of commits.
_LINKED = re.compile(
    r"(?i)(@|#(?=\w)|\bgh-(?=\d)|:(?=//)|\bwww(?=\.)|\b(?=[0-9]*[a-f])(?=[a-f]*\d)[0-9a-f]{6}(?=[0-9a-f]+\b))"
)


def code(text: str, limit: int = 300) -> str:
    """Inline code. The run of backticks around it is longer than any inside; empty text is empty."""
    line = one_line(text, limit)
    if not line:
        return ""
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def cell(text: str, limit: int = 160) -> str:
    """Inline code inside a table: a bar would end the cell even there, so it becomes its look-alike."""
    return code(text.replace("|", "\u2502"), limit)


def prose(text: str, limit: int = 600) -> str:
    """Running text: what Markdown or HTML give a meaning is escaped, and nothing becomes a mention or a link."""
    return html.escape(_SPECIAL.sub(r"\\\1", unlinked(one_line(text, limit))), quote=False)


def unlinked(text: str) -> str:
    """``text`` in which GitHub sees no person, issue, commit or address: an invisible space breaks each."""
    return _LINKED.sub("\\1\u200b", text)


def fence(text: str, *, language: str = "text", budget: int = 4000) -> str:
    """A fenced block of the end of ``text``; the fence is longer than any run of backticks inside."""
    body = tail(text, budget)
    ticks = "`" * max(3, _longest_run(body) + 1)
    return f"{ticks}{language}\n{body}\n{ticks}"


def _longest_run(text: str) -> int:
    """Of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)


def details(summary: str, body: str) -> str:
    """A part that is folded away. The empty lines let the body be read as Markdown."""
    return f"<details><summary>{html.escape(unlinked(plain(summary)), quote=False)}</summary>\n\n{body}\n\n</details>"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are already escaped."""
    lines = [f"| {' | '.join(headings)} |", f"|{'|'.join(' --- ' for _ in headings)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
