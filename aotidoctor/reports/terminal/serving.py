"""Section per model of ``aotidoctor triton`` on the terminal."""

from __future__ import annotations

from rich.text import Text

from aotidoctor.model.phrases import plural
from aotidoctor.model.report import Report
from aotidoctor.reports import names_view, serving_view
from aotidoctor.reports.terminal.layout import STYLES, Layout
from aotidoctor.reports.text import one_line


def show_names(report: Report, out: Layout) -> None:
    """The names of a package's tensors, where they were asked for."""
    for title, rows in names_view.tables(report):
        out.title(title)
        shown = ([one_line(cell, 200) for cell in row] for row in rows)
        out.table(names_view.HEADINGS, shown, whole=names_view.HEADINGS[1:3])


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
        rule, line, what, remedy = serving_view.HEADINGS
        rows = ((Text(row.rule, style=STYLES[row.severity]), row.line, row.what, row.remedy) for row in model.rows)
        out.table(serving_view.HEADINGS, rows, whole=(rule, line), ratios={what: 3, remedy: 2})
    if hidden:
        out.more(f"{plural(hidden, 'note')} without a problem")
