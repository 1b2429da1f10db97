"""What a log said, on the terminal."""

from __future__ import annotations

from rich.text import Text

from aotidoctor.model.log import LogReading
from aotidoctor.reports import log_view
from aotidoctor.reports.terminal.layout import STYLES, Layout
from aotidoctor.reports.text import one_line


def show_log(log: LogReading, out: Layout, *, detail: int) -> None:
    """The failures with their lines, and what else the log tells."""
    rows, hidden = log_view.rows(log, whole=detail > 0)
    facts = log_view.facts(log)
    if not rows and not facts:
        return
    out.title("Log")
    if rows:
        cells = ((Text(row.line, style=STYLES[row.tone]), one_line(row.said, 160), row.what) for row in rows)
        line, said, what = log_view.HEADINGS
        out.table(log_view.HEADINGS, cells, whole=(line,), ratios={said: 3, what: 2})
    if hidden:
        out.more(f"{hidden} more")
    for label, text in facts:
        out.row(label, text)
