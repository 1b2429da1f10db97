"""Titles, labelled lines and tables for a terminal: what is no report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

from aotidoctor.model.record import record
from aotidoctor.reports.terminal.captured import for_stream
from aotidoctor.reports.terminal.layout import Layout


@record
class Part:
    """A title with labelled lines and a table under it; both may be empty."""

    title: str
    labelled: tuple[tuple[str, str], ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[Sequence[str], ...] = ()


def shown(parts: Sequence[Part], *, stream: TextIO, environ: Mapping[str, str]) -> str:
    """``parts`` as ``stream`` can show them."""
    return for_stream(lambda console: _parts(parts, Layout(console)), stream=stream, environ=environ).lstrip("\n")


def _parts(parts: Sequence[Part], out: Layout) -> None:
    for part in parts:
        out.title(part.title)
        for label, words in part.labelled:
            out.row(label, words)
        if part.rows:
            out.table(part.headings, part.rows)
