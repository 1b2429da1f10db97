"""A comparison of two documents for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.text import Text

from aotidoctor.model.difference import Comparison, Difference
from aotidoctor.model.phrases import plural
from aotidoctor.reports import difference_view as view
from aotidoctor.reports.terminal.captured import for_stream, plain
from aotidoctor.reports.terminal.layout import Layout

_LEVELS = {"decisive": "red", "relevant": "yellow", "outcome": "cyan", "minor": "dim"}
# Below this width a table would fold every cell.
_WIDE, _UNFOLDED = 110, 80
_SHOWN = 40


def text(found: Comparison, *, stream: TextIO, environ: Mapping[str, str], detail: int = 0) -> str:
    """``found`` as ``stream`` can show it; ``detail`` is -1 (headline), 0, or more for the minor differences."""
    return for_stream(
        lambda console: _show(found, Layout(console), detail), stream=stream, environ=environ, unfolded=_UNFOLDED
    )


def plain_text(found: Comparison, *, width: int = 80, detail: int = 0) -> str:
    """``found`` without colour at a fixed width."""
    return plain(lambda console: _show(found, Layout(console), detail), width=width)


def _show(found: Comparison, out: Layout, detail: int) -> None:
    head = view.headline(found)
    out.headline(head)
    if detail < 0:
        return
    for side in (found.a, found.b):
        out.row(side.label, view.side_text(side))
    _differences(found, out, detail)
    out.blank()
    for label, words in view.counts(found):
        out.row(label, words)
    if detail > 0 and found.unknown:
        out.title("Unknown on one side")
        for line in found.unknown:
            out.paragraph(line, style="dim")


def _differences(found: Comparison, out: Layout, detail: int) -> None:
    told = found.differences if detail > 0 else found.matters[:_SHOWN]
    left = len(found.differences) - len(told)
    if told:
        out.title("Differences")
        (_table if out.width >= _WIDE else _list)(told, out)
    if left > 0:
        out.paragraph(f"and {plural(left, 'more difference')}; -v shows all", style="dim")


def _table(told: Sequence[Difference], out: Layout) -> None:
    rows = ((item, view.row(item)) for item in told)
    out.table(view.HEADINGS, ((Text(row[0], style=_LEVELS[item.level]), *row[1:]) for item, row in rows))


def _list(told: Sequence[Difference], out: Layout) -> None:
    for item in told:
        mark, what, a, b, playbook, why = view.row(item)
        if item.level == "outcome":
            # What came of it needs no reason.
            out.pair(Text(f" {mark}", style=_LEVELS[item.level]), Text(f"{what}: A {a}, B {b}"))
            continue
        out.pair(Text(f" {mark or ' '}", style=_LEVELS[item.level]), Text(what, style="bold"))
        out.pair(Text("    A", style="dim"), Text(a))
        out.pair(Text("    B", style="dim"), Text(b))
        out.pair(Text("     "), Text(": ".join(words for words in (playbook, why) if words), style="dim"))
