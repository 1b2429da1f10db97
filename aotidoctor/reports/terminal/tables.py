"""Titles, labelled lines and tables for a terminal: what is no report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.text import Text

from aotidoctor.reports.terminal.layout import Layout
from aotidoctor.reports.terminal.stream import looks_of

# Columns where there is no terminal.
_UNFOLDED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A title with labelled lines and a table under it; both may be empty."""

    title: str
    labelled: tuple[tuple[str, str], ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[Sequence[str], ...] = ()


def shown(parts: Sequence[Part], *, stream: TextIO, environ: Mapping[str, str]) -> str:
    """``parts`` as ``stream`` can show them."""
    looks = looks_of(stream)
    console = Console(
        file=looks,
        width=None if looks.isatty() or "COLUMNS" in environ else _UNFOLDED,
        _environ=environ,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    with console.capture() as captured:
        out = Layout(console)
        for part in parts:
            _part(part, out)
    text = "\n".join(line.rstrip(" ") for line in captured.get().lstrip("\n").split("\n"))
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _part(part: Part, out: Layout) -> None:
    out.title(part.title)
    for label, words in part.labelled:
        out.row(label, words)
    if part.rows:
        table = out.table(*part.headings)
        for row in part.rows:
            table.add_row(*(Text(cell) for cell in row))
        out.show(table)
