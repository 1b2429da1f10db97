"""A report or a contract in a notebook: the first screen as a piece of HTML, and the whole page behind a fold.

The piece sets no style but its own and runs no script; the page is in a frame of its own, which may not load anything.
"""

from __future__ import annotations

from html import escape

from aotidoctor.model.contract import Contract
from aotidoctor.model.report import Report
from aotidoctor.reports import contract_view, view
from aotidoctor.reports.headline import headline
from aotidoctor.reports.text import one_line, plain
from aotidoctor.reports.tones import COLORS

# A page beyond this is for a browser, not for a cell: a notebook keeps its outputs.
_LARGEST_PAGE = 2 << 20
_MOST_LEAVES = 200


def report_piece(report: Report) -> str:
    """Verdict, cause, subject, what to do; the whole report to unfold."""
    head = headline(report)
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{_text(row.label)}</th>"
        f"<td style='text-align:left'>{_code(row.text) if row.is_code else _text(row.text)}</td></tr>"
        for row in view.first_rows(report)
    )
    title = f"<b style='color:{COLORS[head.tone]}'>{_text(head.word)}</b> {_text(head.text)}"
    return f"<div><p>{title}</p><table>{rows}</table>{_page(report)}</div>"


def _page(report: Report) -> str:
    from aotidoctor.reports.html.render import render  # noqa: PLC0415 - Jinja is for who looks at it

    page = render(report)
    if len(page) > _LARGEST_PAGE:
        return "<p>The whole report is long: <code>report.to_html('report.html')</code></p>"
    frame = f"<iframe sandbox srcdoc=\"{escape(page)}\" style='width:100%;height:40em;border:0'></iframe>"
    return f"<details><summary>The whole report</summary>{frame}</details>"


def contract_piece(contract: Contract) -> str:
    """Every leaf and output with what the compiled code expects of it."""
    rows = [(leaf.path, contract_view.leaf_text(leaf)) for leaf in contract.leaves]
    rows += [(output.path, contract_view.output_text(output)) for output in contract.outputs]
    cells = "".join(
        f"<tr><td style='text-align:left'>{_code(one_line(path, 120))}</td>"
        f"<td style='text-align:left'>{_code(one_line(expected))}</td></tr>"
        for path, expected in rows[:_MOST_LEAVES]
    )
    more = f"<p>{len(rows) - _MOST_LEAVES} more</p>" if len(rows) > _MOST_LEAVES else ""
    title = f"<p>{len(contract.leaves)} inputs, {len(contract.outputs)} outputs</p>"
    return f"<div>{title}<table><tr><th>leaf</th><th>compiled for</th></tr>{cells}</table>{more}</div>"


def contract_lines(contract: Contract) -> str:
    """The same as text."""
    rows = [(leaf.path, contract_view.leaf_text(leaf)) for leaf in contract.leaves]
    rows += [(output.path, contract_view.output_text(output)) for output in contract.outputs]
    width = min(40, max((len(path) for path, _ in rows), default=0))
    lines = [f"{one_line(path, 120):<{width}}  {one_line(expected)}" for path, expected in rows[:_MOST_LEAVES]]
    return "\n".join([*lines, *([f"{len(rows) - _MOST_LEAVES} more"] if len(rows) > _MOST_LEAVES else [])])


def _text(text: str) -> str:
    return escape(plain(text))


def _code(text: str) -> str:
    return f"<code style='white-space:pre-wrap'>{_text(text)}</code>"
