"""Write a report as one HTML file without external resources, or as a piece of HTML for a notebook.

A policy in its head forbids loading anything, whatever a child printed. A page with long tables folds them, puts them
behind evidence, runs and host, and holds one script, which filters their rows and is allowed by its hash alone; all of
the page can be read without it. The first screen says what was found; each statement links to the evidence and the runs
that show it. Dark and light, narrow and wide, screen and paper are left to the style sheet.

The piece for a notebook sets no style but its own and runs no script; the whole page is in a frame below it, which may
not load anything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from html import escape

from aotidoctor.model.contract import ModelContract
from aotidoctor.model.evidence import plural
from aotidoctor.model.report import Diagnosis, Report, Status
from aotidoctor.reports import package_view
from aotidoctor.reports.html import html_blocks
from aotidoctor.reports.html.figures import figure
from aotidoctor.reports.html.html_blocks import (
    PageWriter,
    fold_tables,
    has_long,
    template_environment,
    verdict_icon,
    with_script_hash,
)
from aotidoctor.reports.page import report_view
from aotidoctor.reports.page.blocks import PageSection, Words, code_words
from aotidoctor.reports.page.log_page import EVENTS, event_of, log_text
from aotidoctor.reports.page.package_page import is_marked
from aotidoctor.reports.page.report_page import sections as page_sections
from aotidoctor.reports.page.report_view import headline
from aotidoctor.reports.text import COLORS, Headline, one_line, plain, seconds

# The first screen.
# The rows of the first screen that have a place of their own; an unlabelled one goes on with the row before it.
_PLACED = frozenset(("Subject", "Looked like", "Is", "How sure", "What to do", ""))
_RUN = re.compile(r"\bR[0-9]+\b")


def verdict_parts(report: Report) -> dict[str, object]:
    """What the first screen of ``report`` shows: the headline, and of a cause that is named all that is known of it."""
    rows = report_view.first_rows(report)
    named = report.diagnoses and report.cannot_examine is None and report.internal_error is None
    if not named or report.verdict != "problem":
        return {"first": None, "rows": rows}
    first = report.diagnoses[0]
    found = report_view.decisive_evidence(report, first)
    if found is not None and not found.expected and found.observed in first.looked_like:
        found = None  # It says the same once more.
    if first.status is not Status.SUSPECTED:
        because = first.confirmation or "gone with the treatment, back without it"
    else:
        because = f"to confirm: {first.would_confirm}" if first.would_confirm else ""
    return {
        "first": first,
        "stage": first.stage or report.stage or "",
        "symptom": _symptom(report, first),
        "found": found,
        "because": because,
        "tried": report_view.tried_line(first.remedy),
        "tried_by": _RUN.findall(first.confirmation)[-1:] if first.remedy.verified else [],
        "rows": tuple(row for row in rows if row.label not in _PLACED),
    }


def _symptom(report: Report, first: Diagnosis) -> str:
    """Where the words come from that it looked like: the first run is the failure as the user sees it.

    Of a log it is the event; where nothing was run, they are the words that a run would have had.
    """
    if report.runs:
        return report.runs[0].id
    events = (event_of(report.log, item) for item in report_view.evidence_of(report, first))
    return next((event for event in events if event), "")


def verdict_facts(report: Report) -> list[tuple[str, Words]]:
    """List what was examined, where and when, on one line each."""
    case = report.case
    rows: list[tuple[str, Words]] = []
    if report_view.has_artifact(report):
        digest = f" · sha256 {case.artifact.sha256[:12]}" if case.artifact.sha256 else ""
        rows.append(("Package", f"{report_view.artifact_text(report)}{digest}"))
    if report.log is not None:
        rows.append(("Log", log_text(report.log)))
    if case.inputs is not None:
        tensors = plural(len(case.inputs.tensors()), "tensor")
        rows.append(("Inputs", f"{case.inputs.path or case.inputs.form} ({tensors})"))
    elif case.inputs_error is not None:
        rows.append(("Inputs", str(case.inputs_error)))
    if not report_view.is_unexamined(report):
        torch = f"torch {case.host.torch.version}" if case.host.torch is not None else "no torch"
        rows.append(("Host", f"{case.host.system} {case.host.machine}, {torch}"))
    command = code_words(report_view.command_text(report.argv))
    made = f"by aotidoctor {report.version}, {report.started} in {seconds(report.seconds)}"
    return [*rows, *report_view.plugin_rows(report), ("Command", command), ("Made", made)]


# The page. The tab tells the verdict, too.
_LATE = ("calls", "values", "contract", "package")
_EARLY = ("also", "plan", "serving", "compat", "stages", "comparison")


def render_html(report: Report) -> str:
    """``report`` as a page."""
    ids = {*(item.id for item in report.findings), *(outcome.id for outcome in report.runs)}
    known = frozenset(filter(html_blocks.anchor, ids))
    events = {f"L{event.first}" for event in report.log.events[:EVENTS]} if report.log is not None else set()
    head = headline(report)
    parts = verdict_parts(report)
    return sections_page(
        report.command,
        head,
        page_sections(report),
        known | events,
        note=report_view.partial_note(report),
        **parts,
        facts=verdict_facts(report),
        figure=lambda of: figure(of, report.localization),
    )


def sections_page(
    command: str, head: Headline, sections: Iterable[PageSection], known: Collection[str], **parts: object
) -> str:
    """A page of ``sections`` below its headline; ``known`` are the ids to which there are links."""
    shown = [section for section in map(fold_tables, sections) if section.blocks]
    template = template_environment(PageWriter(known)).get_template("report.html.jinja")
    scripts = ("report.js",) if any(has_long(section.blocks) for section in shown) else ()
    given = {"note": "", "first": None, "rows": (), "facts": (), **parts}
    page = template.render(
        command=command,
        head=head,
        sections=_in_order(shown),
        icon=verdict_icon(COLORS[head.tone]),
        **with_script_hash(*scripts),
        **given,
    )
    return page + "\n"


def _in_order(found: list[PageSection]) -> list[PageSection]:
    """A contract in which a leaf is marked comes before the place of the failure; sections with long tables come last.

    One that shows what differs stays where it is.
    """
    late = [section for section in found if section.id in _LATE and has_long(section.blocks)]
    rest = [section for section in found if section not in late]
    first = [section for section in rest if section.id == "contract" and is_marked(section.blocks)]
    rest = [section for section in rest if section not in first]
    early = next((at for at, section in enumerate(rest) if section.id not in _EARLY), len(rest))
    return [*rest[:early], *first, *rest[early:-1], *late, *rest[-1:]]


# A report or a contract in a notebook.
# A page beyond this is for a browser, not for a cell: a notebook keeps its outputs.
_LARGEST_PAGE = 2 << 20
_MOST_LEAVES = 200


def report_piece(report: Report) -> str:
    """Verdict, cause, subject, what to do; the whole report to unfold."""
    head = headline(report)
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{_piece_text(row.label)}</th>"
        f"<td style='text-align:left'>{_piece_code(row.text) if row.is_code else _piece_text(row.text)}</td></tr>"
        for row in report_view.first_rows(report)
    )
    title = f"<b style='color:{COLORS[head.tone]}'>{_piece_text(head.word)}</b> {_piece_text(head.text)}"
    page = render_html(report)
    if len(page) > _LARGEST_PAGE:
        report_frame = "<p>The whole report is long: <code>report.to_html('report.html')</code></p>"
    else:
        frame = f"<iframe sandbox srcdoc=\"{escape(page)}\" style='width:100%;height:40em;border:0'></iframe>"
        report_frame = f"<details><summary>The whole report</summary>{frame}</details>"
    return f"<div><p>{title}</p><table>{rows}</table>{report_frame}</div>"


def contract_piece(contract: ModelContract) -> str:
    """Write a table of every leaf and output, with what the compiled code expects of it."""
    rows = _contract_rows(contract)
    cells = "".join(
        f"<tr><td style='text-align:left'>{_piece_code(one_line(path))}</td>"
        f"<td style='text-align:left'>{_piece_code(one_line(expected))}</td></tr>"
        for path, expected in rows[:_MOST_LEAVES]
    )
    more = f"<p>{len(rows) - _MOST_LEAVES} more</p>" if len(rows) > _MOST_LEAVES else ""
    title = f"<p>{len(contract.leaves)} inputs, {len(contract.outputs)} outputs</p>"
    return f"<div>{title}<table><tr><th>leaf</th><th>compiled for</th></tr>{cells}</table>{more}</div>"


def contract_lines(contract: ModelContract) -> str:
    """The same as text."""
    rows = _contract_rows(contract)
    width = min(40, max((len(path) for path, _ in rows), default=0))
    lines = [f"{one_line(path):<{width}}  {one_line(expected)}" for path, expected in rows[:_MOST_LEAVES]]
    return "\n".join([*lines, *([f"{len(rows) - _MOST_LEAVES} more"] if len(rows) > _MOST_LEAVES else [])])


def _contract_rows(contract: ModelContract) -> list[tuple[str, str]]:
    rows = [(leaf.path, package_view.leaf_text(leaf)) for leaf in contract.leaves]
    return rows + [(output.path, package_view.output_text(output)) for output in contract.outputs]


def _piece_text(text: str) -> str:
    return escape(plain(text))


def _piece_code(text: str) -> str:
    return f"<code style='white-space:pre-wrap'>{_piece_text(text)}</code>"
