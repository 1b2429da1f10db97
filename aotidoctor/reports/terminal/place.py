"""Section "Where" of the terminal: culprit, timeline, native stack with source, values of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from aotidoctor.reports import place_view
from aotidoctor.reports.terminal.layout import Layout
from aotidoctor.reports.text import plural
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
    table = out.table("", "Call", "Kind", "Took", "Made of")
    for row in rows:
        style = "red" if row[0] else ""
        table.add_row(*(Text(cell, style=style) for cell in row))
    out.show(table)


def _stack(place: Localization, out: Layout, *, whole: bool) -> None:
    rows = place_view.frame_rows(place, whole=whole)
    if rows:
        out.title("Native stack")
        table = out.table("", "Function", "Place")
        for number, function, where in rows:
            table.add_row(Text(number), Text(function), Text(where, style="dim"))
        out.show(table)
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
    table = out.table(*rows[0])
    for row in rows[1:]:
        style = "red" if row[0] else ""
        table.add_row(*(Text(cell, style=style) for cell in row))
    out.show(table)
    for note in place.notes:
        out.paragraph(note, style="dim")
