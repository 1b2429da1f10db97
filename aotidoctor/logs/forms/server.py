"""Triton Inference Server: models that do not load, in its log and in the table of models that it prints."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, lines_found
from aotidoctor.logs.line import Line

START = re.compile(
    r"failed to load '|UNAVAILABLE: |UNLOADED|failed to load all models|error: creating server|Poll failed"
)
_LOAD = re.compile(r"failed to load '[^']+' version \d+: (?P<why>.*)|failed to load '[^']+'")
_TABLE = re.compile(r"^\|\s*[^\s|]+\s*\|\s*[^\s|]+\s*\|\s*(?P<why>UNAVAILABLE: .*)$")
_MORE = re.compile(r"^\|\s+\|\s+\|\s*(?P<why>[^\s|].*)$")


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The model and why it was not loaded."""
    text = lines[at].text
    table = _TABLE.match(text)
    if table is not None:
        return _row(lines, at, table)
    loaded = _LOAD.search(text)
    if loaded is not None:
        why = loaded["why"] or text
        said, follows = ((lines[at].number, why),), loaded["why"] is None
        return Found(form="triton", said=said, first=at, end=at + 1, stage="serve", follows=follows)
    if "failed to load all models" in text or "creating server" in text:
        return lines_found(lines, at, at + 1, form="triton", stage="serve", follows=True)
    return None


def _row(lines: Sequence[Line], at: int, table: re.Match[str]) -> Found:
    """A cell goes on in the rows below that have no model."""
    said = [(lines[at].number, _cell(table["why"]))]
    end = at + 1
    while end < len(lines) and (more := _MORE.match(lines[end].text)) is not None:
        said.append((lines[end].number, _cell(more["why"])))
        end += 1
    whole = ((said[0][0], " ".join(words for _, words in said)),)
    return Found(form="triton", said=whole, first=at, end=end, stage="serve")


def _cell(text: str) -> str:
    """The text of a table's last cell, without the line that closes it."""
    return text.rstrip().removesuffix("|").rstrip()
