"""Section "Where" of the terminal: culprit, timeline, native stack with source, values of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from aotidoctor.model.phrases import plural
from aotidoctor.reports import place_view
from aotidoctor.reports.terminal.layout import Layout
from aotidoctor.reports.value_table import value_rows

if TYPE_CHECKING:
    from aotidoctor.model.localization import Localization


def show_place(place: Localization, out: Layout, *, detail: int) -> None:
    """Print what is known of the place; nothing where nothing is."""
    rows = place_view.place_rows(place)
    if rows:
        out.title("Where")
    for label, words in rows:
        out.row(label, words)
    _timeline(place, out, whole=detail > 1)
    _stack(place, out, whole=detail > 0)
    _values(place, out, whole=detail > 0)


def _timeline(place: Localization, out: Layout, *, whole: bool) -> None:
    rows, before = place_view.timeline_rows(place, whole=whole)
    if not rows:
        return
    out.title("Calls")
    if before:
        out.line(Text(f" {plural(before, 'call')} before these (-vv shows all)", style="dim"))
    out.table(("", "Call", "Kind", "Took", "Made of"), map(_marked, rows))


def _stack(place: Localization, out: Layout, *, whole: bool) -> None:
    rows = place_view.frame_rows(place, whole=whole)
    if rows:
        out.title("Native stack")
        out.table(("", "Function", "Place"), ((number, name, Text(where, style="dim")) for number, name, where in rows))
    # A run that named the cause at once did not look for the place.
    shown = place_view.excerpt(place) if rows or place.timeline or whole else None
    if shown is not None:
        out.line(Text(f" {shown.title}", style="dim"))
        out.block(shown.text)


def _values(place: Localization, out: Layout, *, whole: bool) -> None:
    if not place.values:
        return
    rows = value_rows(place.values, place.first_bad, whole=whole)
    if not rows:
        return
    out.title("Values of kernels")
    out.table(rows[0], map(_marked, rows[1:]))
    for note in place.notes:
        out.paragraph(note, style="dim")


def _marked(row: Sequence[str]) -> list[Text]:
    """In red where the row has a mark."""
    return [Text(cell, style="red" if row[0] else "") for cell in row]
