"""Section per model of ``aotidoctor triton`` on the terminal."""

from __future__ import annotations

from rich.text import Text

from aotidoctor.model.report import Report
from aotidoctor.reports import names_view, serving_view
from aotidoctor.reports.terminal.layout import STYLES, Layout
from aotidoctor.reports.text import one_line, plural


def show_names(report: Report, out: Layout) -> None:
    """The names of a package's tensors, where they were asked for."""
    for title, rows in names_view.tables(report):
        out.title(title)
        table = out.table(*names_view.HEADINGS)
        for row in rows:
            table.add_row(*(Text(one_line(cell, 200)) for cell in row))
        for column in table.columns[1:3]:
            column.no_wrap = True
        out.show(table)


def show_serving(report: Report, out: Layout, *, detail: int) -> None:
    """A short table per model; notes with ``-v``."""
    hidden = 0
    everything = serving_view.model_rows(report, notes=True)
    for model, whole in zip(serving_view.model_rows(report, notes=detail > 0), everything, strict=True):
        hidden += len(whole.rows) - len(model.rows)
        if report.names is not None and not model.rows:
            continue
        out.title(one_line(f"{model.name} on {serving_view.release_text(report)}", 120))
        if not model.rows:
            out.paragraph("nothing wrong found")
            continue
        table = out.table(*serving_view.HEADINGS)
        for row in model.rows:
            style = STYLES[row.severity]
            table.add_row(Text(row.rule, style=style), Text(row.line), Text(row.what), Text(row.remedy))
        for column in table.columns[:2]:
            column.no_wrap = True
        table.columns[2].ratio, table.columns[3].ratio = 3, 2
        out.show(table)
    if hidden:
        out.line(Text(f" and {plural(hidden, 'note')} without a problem (-v shows all)", style="dim"))
