"""Packages and hosts on the terminal."""

from __future__ import annotations

from rich.text import Text

from aotidoctor.model.compat import Compatibility
from aotidoctor.reports import compat_view
from aotidoctor.reports.terminal.layout import Layout

_STYLES = {"good": "green", "bad": "red", "unsure": "yellow"}
_BY_WORD = {word: _STYLES[compat_view.TONES[answer]] for answer, word in compat_view.WORDS.items()}


def show_compat(found: Compatibility, out: Layout) -> None:
    """The matrix, every answer with its reason, and what each package needs."""
    matrix = compat_view.matrix(found)
    if matrix is not None:
        _table(out, compat_view.MATRIX, *matrix)
    rows = compat_view.answer_rows(found)
    one = len({row[0] for row in rows}) == 1
    _table(out, "Answers", compat_view.HEADINGS[one:], tuple(row[one:] for row in rows))
    for title, pairs in compat_view.needs_tables(found):
        out.title(title)
        for label, text in pairs:
            out.row(label, text)


def _table(out: Layout, title: str, headings: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> None:
    out.title(title)
    styled = ([Text(cell, style=_BY_WORD.get(cell, "")) for cell in row] for row in rows)
    out.table(headings, styled, whole=("Answer",))
