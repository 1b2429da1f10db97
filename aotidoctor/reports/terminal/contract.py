"""The contract of a report, leaf by leaf, beside what was given."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from aotidoctor.model.phrases import plural
from aotidoctor.model.report import Report
from aotidoctor.reports.contract_view import LeafRow, leaf_rows
from aotidoctor.reports.terminal.layout import STYLES, Layout
from aotidoctor.reports.text import one_line

_MARKS = {"": " ", "warn": "!", "error": "x"}

_LEAVES_SHOWN = 24


def show_contract(report: Report, out: Layout, detail: int) -> None:
    """A table of the leaves, and why the inputs could not be read."""
    rows = leaf_rows(report)
    if not rows:
        return
    out.title("Contract")
    shown = rows if detail > 0 else _most_telling(rows)
    observed = report.case.inputs is not None
    cells = []
    for row in shown:
        style = STYLES[row.mark]
        leaf = [Text(_MARKS[row.mark], style=style), Text(row.path, style=style), Text(row.expected)]
        cells.append([*leaf, *([Text(row.observed or "", style=style)] if observed else [])])
    out.table(("", "Leaf", "Expected", *(("Observed",) if observed else ())), cells)
    if len(shown) < len(rows):
        out.more(plural(len(rows) - len(shown), "more leaf", "more leaves"))
    problem = report.case.inputs_error
    if problem is not None:
        out.row("Inputs", one_line(str(problem)))


def _most_telling(rows: Sequence[LeafRow]) -> Sequence[LeafRow]:
    """All of a short table; of a long one the marked leaves first, in order, then others up to the limit."""
    if len(rows) <= _LEAVES_SHOWN:
        return rows
    marked = [row for row in rows if row.mark][:_LEAVES_SHOWN]
    others = [row for row in rows if not row.mark][: _LEAVES_SHOWN - len(marked)]
    return [row for row in rows if row in marked or row in others]
