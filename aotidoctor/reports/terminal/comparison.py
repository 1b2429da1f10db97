"""Section "Against the reference" of the terminal."""

from __future__ import annotations

from rich.text import Text

from aotidoctor.model.report import Report
from aotidoctor.reports.comparison_view import HEADINGS, comparison_rows, reasons
from aotidoctor.reports.terminal.layout import Layout

# Below this width the last columns would push the others together.
_WIDE, _NARROW = 110, 8
_STYLES = {"": "", "!": "yellow", "x": "red"}


def show_comparison(report: Report, out: Layout) -> None:
    """A table of the outputs; columns that are empty for all of them are left out."""
    rows = comparison_rows(report)
    if not rows:
        return
    out.title("Against the reference")
    shown = len(HEADINGS) if out.width >= _WIDE else _NARROW
    told = [at for at in range(shown) if any(row[at] for row in rows)]
    headings = [HEADINGS[at] for at in told]
    styled = ([Text(row[at], style=_STYLES[row[0]]) for at in told] for row in rows)
    # A long shape may take two lines; half a verdict is none.
    out.table(headings, styled, whole=[heading for heading in headings if heading != "Values"])
    for reason in reasons(report):
        out.paragraph(reason, style="dim")
