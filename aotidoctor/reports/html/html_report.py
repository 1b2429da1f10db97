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
from collections.abc import Collection, Iterator
from dataclasses import replace
from html import escape

from markupsafe import Markup

from aotidoctor.model.contract import ModelContract
from aotidoctor.model.evidence import Evidence, FileSource, RunSource, plural
from aotidoctor.model.record import record
from aotidoctor.model.report import Diagnosis, LogEvent, LogPattern, LogReading, Report, Status
from aotidoctor.reports import package_view, report_view
from aotidoctor.reports.html import html_blocks, package_sections, run_sections
from aotidoctor.reports.html.html_blocks import (
    Block,
    NoteBlock,
    PageSection,
    Pairs,
    TableBlock,
    TableLine,
    cell,
    cut,
    fold_tables,
    has_long,
    mono,
    template_environment,
    verdict_icon,
    with_script_hash,
)
from aotidoctor.reports.report_view import headline
from aotidoctor.reports.text import COLORS, one_line, plain, seconds, size

# The events of a log.
_LOG_ROOM = 500


def log_blocks(log: LogReading | None) -> tuple[Block, ...]:
    """The events of a log in order, with the causes that know them."""
    if log is None:
        return ()
    versions = ", ".join(f"{name} {text}" for name, text in log.versions.items())
    pairs = (
        ("Read", f"{log.name}: {plural(log.lines, 'line')}, {size(log.size)}"),
        ("Versions", versions),
        ("From", ", ".join(log.origins)),
        ("Not read", "; ".join(log.problems)),
    )
    rows = tuple((label, html_blocks.line(text, 900)) for label, text in pairs if text)
    # Interleaved writers can begin on one line: the first of them is its anchor.
    first = {event.first: event for event in reversed(log.events)}
    lines, more = cut(
        "events", [_event(log, event, anchor=first[event.first] is event) for event in log.events], _LOG_ROOM
    )
    headings = ("Line", "Form", "Says", "Known as", "Relation")
    table = (TableBlock(label="Events of the log", headings=headings, rows=lines, stacks=True),) if lines else ()
    left = f"and {log.more_events:,} more events, not kept" if log.more_events else ""
    return (Pairs(rows=rows), *table, *more, *((NoteBlock(body=html_blocks.line(left), tone="dim"),) if left else ()))


def _event(log: LogReading, event: LogEvent, *, anchor: bool) -> TableLine:
    known = [match for match in log.matches if match.event == event]
    named = Markup(" ").join(dict.fromkeys(_log_cause(match.pattern) for match in known))
    if event in log.unknown:
        named = html_blocks.line("no pattern matches it")
    span = str(event.first) if event.last == event.first else f"{event.first}-{event.last}"
    form = " ".join(part for part in (event.form, event.kind) if part)
    # What an event is to the others, who wrote it, and the line that gave it away.
    items = [match.text for match in known if match.text.strip() != event.text.strip()]
    parts = (
        f"repeats or follows from line {event.echo_of}" if event.echo_of is not None else "",
        "after a CUDA error: unreliable" if event.tainted else "",
        f"logged {event.count:,} times" if event.count > 1 else "",
        event.origin,
        items[0] if items else "",
    )
    cells = (
        cell(span, look="num"),
        cell(form, tone="dim"),
        mono(event.text),
        cell(named),
        cell("; ".join(part for part in parts if part), tone="dim"),
    )
    echo = event.echo_of is not None or event.tainted
    return TableLine(cells=cells, tone="dim" if echo else "bad" if known else "", id=_anchor(event) if anchor else "")


def _log_cause(pattern: LogPattern) -> Markup:
    """The cause, and the releases in which it is known or mended."""
    parts = (f"known in {pattern.known}" if pattern.known else "", f"fixed in {pattern.fixed}" if pattern.fixed else "")
    releases = ", ".join(word for word in parts if word)
    release_note = html_blocks.dim(f"{pattern.component}: {releases}" if releases else "")
    return Markup("{} {}").format(html_blocks.code(pattern.cause), release_note)


def _anchor(event: LogEvent) -> str:
    return f"L{event.first}"


def event_of(log: LogReading | None, item: Evidence) -> str:
    """The anchor of the event that a finding speaks of; empty where it speaks of none that is shown."""
    if log is None or not isinstance(item.source, FileSource) or item.source.line is None:
        return ""
    at = item.source.line if item.code.startswith("AD-LOG-") else -1
    return next((_anchor(event) for event in log.events[:_LOG_ROOM] if event.first <= at <= event.last), "")


# Evidence, other causes, and what was not checked.
_ROOM = 500
_TONES = {"info": "dim", "warn": "unsure", "error": "bad"}


def evidence_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """Build the table of all findings, each with an anchor."""
    lines, more = cut("findings", [_finding(report, item, known) for item in report.findings], _ROOM)
    if not lines:
        return ()
    headings = ("", "Code", "About", "Observed", "Expected", "Source")
    return (TableBlock(label="Evidence", headings=headings, rows=lines, stacks=True, look="evidence"), *more)


def _finding(report: Report, item: Evidence, known: Collection[str]) -> TableLine:
    tone = _TONES[item.severity.value]
    name = Markup('<b>{}</b> <span class="tag {}">{}</span>').format(
        html_blocks.line(item.id, 20), tone, item.severity.value
    )
    used = [found.cause for found in report.diagnoses if item.id in found.evidence]
    code = Markup("{} {}").format(html_blocks.code(item.code), html_blocks.line(item.kind, 60))
    if used:
        code += Markup('<span class="dim"> · shows {}</span>').format(html_blocks.line(", ".join(used)))
    # What was seen, and the message where that says more.
    parts = (item.observed, "" if report_view.adds_nothing(item) else item.message)
    if isinstance(item.source, RunSource) and item.source.run in known:
        stream = "" if item.source.stream == "result" else item.source.stream
        where = stream + (f":{item.source.line}" if item.source.line is not None else "")
        source = Markup("{} {}").format(html_blocks.link(item.source.run), html_blocks.line(where))
    else:
        place = report_view.short_source(item.source)
        event = event_of(report.log, item)
        source = html_blocks.link(event, place) if event else html_blocks.line(place)
    cells = (
        cell(name, heads=True),
        cell(code),
        mono(item.subject or ""),
        cell(html_blocks.link_mentions(" — ".join(part for part in parts if part), known, 900)),
        cell(html_blocks.link_mentions(item.expected, known)),
        cell(source, tone="dim"),
    )
    return TableLine(cells=cells, tone=tone, id=html_blocks.anchor(item.id))


def other_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """The causes after the first."""
    lines = tuple(
        TableLine(
            cells=(
                cell(html_blocks.code(item.cause), heads=True),
                mono(item.subject or ""),
                cell(html_blocks.line(item.title)),
                cell(html_blocks.link_mentions(report_view.how_sure(item), known)),
                cell(html_blocks.links(name for name in item.evidence if name in known)),
            )
        )
        for item in report.diagnoses[1:]
    )
    headings = ("Cause", "Subject", "What it is", "How sure", "Evidence")
    return (TableBlock(label="Also possible", headings=headings, rows=lines, stacks=True),) if lines else ()


def not_checked_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """Build the table of what was not checked, by reason."""
    grouped: dict[str, list[str]] = {}
    for item in report.not_checked:
        grouped.setdefault(item.reason, []).append(f"{item.name} ({item.code})")
    lines = [
        TableLine(
            cells=(
                cell(html_blocks.link_mentions(reason, known, 900), heads=True),
                cell(html_blocks.line(", ".join(names), 4000), tone="dim"),
            )
        )
        for reason, names in grouped.items()
    ]
    listed, more = cut("reasons", lines, _ROOM)
    if not listed:
        return ()
    return (
        TableBlock(label="Not checked", headings=("Because", "Not checked"), rows=listed, stacks=True, look="why"),
        *more,
    )


# The first screen.
_NOTHING = Markup("")
# The rows of the first screen that have a place of their own; an unlabelled one goes on with the row before it.
_PLACED = frozenset(("Subject", "Looked like", "Is", "How sure", "What to do", ""))
_RUN = re.compile(r"\bR[0-9]+\b")


@record
class VerdictBlock:
    """``tone`` is ``good``, ``bad``, ``unsure`` or ``partial``; what is not known is empty.

    ``rows`` are said where no cause is named, and what else there is to say where one is. ``sure`` is ``confirmed`` or
    ``suspected`` with ``percent``.
    """

    word: str
    tone: str
    title: str
    cause: str = ""
    stage: str = ""
    refs: Markup = _NOTHING
    note: str = ""
    subject: str = ""
    looked_like: str = ""
    looked_refs: Markup = _NOTHING
    observed: str = ""
    expected: str = ""
    is_refs: Markup = _NOTHING
    sure: str = ""
    percent: str = ""
    because: Markup = _NOTHING
    remedy: Markup = _NOTHING
    command: str = ""
    tried: Markup = _NOTHING
    rows: tuple[tuple[str, Markup], ...] = ()


def verdict(report: Report, known: Collection[str]) -> VerdictBlock:
    """The first screen of ``report``; ``known`` are the ids that can be linked."""
    head = headline(report)
    block = VerdictBlock(word=head.word, tone=head.tone, title=head.text, note=report_view.partial_note(report))
    named = report.diagnoses and report.cannot_examine is None and report.internal_error is None
    if not named or report.verdict != "problem":
        rows = tuple((row.label, html_blocks.link_mentions(row.text, known)) for row in report_view.first_rows(report))
        return replace(block, rows=rows)
    first = report.diagnoses[0]
    found = report_view.decisive_evidence(report, first)
    if found is not None and not found.expected and found.observed in first.looked_like:
        found = None  # It says the same once more.
    if first.status is not Status.SUSPECTED:
        because = first.confirmation or "gone with the treatment, back without it"
    else:
        because = f"to confirm: {first.would_confirm}" if first.would_confirm else ""
    runs = [name for name in _RUN.findall(first.confirmation) if name in known] if first.remedy.verified else []
    words = one_line(report_view.tried_line(first.remedy), 600)
    tried = Markup("{} {}").format(words, html_blocks.links(runs[-1:])) if words else _NOTHING
    return replace(
        block,
        title=one_line(first.title, 600),
        cause=first.cause,
        stage=first.stage or report.stage or "",
        refs=html_blocks.links(name for name in first.evidence if name in known),
        subject=one_line(first.subject or ""),
        looked_like=one_line(first.looked_like, 600),
        looked_refs=_symptom(report, first, known),
        observed=one_line(found.observed, 400) if found is not None else "",
        expected=one_line(found.expected, 400) if found is not None else "",
        is_refs=html_blocks.link(found.id) if found is not None and found.id in known else _NOTHING,
        sure=first.status.value,
        percent=f"{first.confidence:.0%}",
        because=html_blocks.link_mentions(because, known),
        remedy=html_blocks.link_mentions(first.remedy.text, known, 1200),
        command=first.remedy.command,
        tried=tried,
        rows=tuple(
            (row.label, html_blocks.link_mentions(row.text, known))
            for row in report_view.first_rows(report)
            if row.label not in _PLACED
        ),
    )


def _symptom(report: Report, first: Diagnosis, known: Collection[str]) -> Markup:
    """Where the words come from that it looked like: the first run is the failure as the user sees it.

    Of a log it is the event; where nothing was run, they are the words that a run would have had.
    """
    if report.runs:
        return html_blocks.links(outcome.id for outcome in report.runs[:1] if outcome.id in known)
    events = (event_of(report.log, item) for item in report_view.evidence_of(report, first))
    event = next((event for event in events if event), "")
    return html_blocks.link(event, f"line {event[1:]}") if event else _NOTHING


def verdict_facts(report: Report) -> tuple[tuple[str, Markup], ...]:
    """List what was examined, where and when, on one line each."""
    case = report.case
    rows = []
    if report_view.has_artifact(report):
        digest = f" · sha256 {case.artifact.sha256[:12]}" if case.artifact.sha256 else ""
        rows.append(("Package", html_blocks.line(f"{report_view.artifact_text(report)}{digest}")))
    if report.log is not None:
        log = report.log
        rows.append(("Log", html_blocks.line(f"{log.name} ({plural(log.lines, 'line')}, {size(log.size)})")))
    if case.inputs is not None:
        tensors = plural(len(case.inputs.tensors()), "tensor")
        rows.append(("Inputs", html_blocks.line(f"{case.inputs.path or case.inputs.form} ({tensors})")))
    elif case.inputs_error is not None:
        rows.append(("Inputs", html_blocks.line(str(case.inputs_error))))
    if not report_view.is_unexamined(report):
        torch = f"torch {case.host.torch.version}" if case.host.torch is not None else "no torch"
        rows.append(("Host", html_blocks.line(f"{case.host.system} {case.host.machine}, {torch}")))
    rows += [(label, html_blocks.line(named)) for label, named in report_view.plugin_rows(report)]
    rows.append(("Command", html_blocks.code(report_view.command_text(report.argv))))
    took = f"{report.started} in {seconds(report.seconds)}"
    return (*rows, ("Made", html_blocks.line(f"by aotidoctor {report.version}, {took}")))


# The page. The tab tells the verdict, too.
_LATE = ("calls", "values", "contract", "package")
_SCRIPT = """
for (const table of document.querySelectorAll("table.long")) {
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "Filter rows";
  field.setAttribute("aria-label", "Filter rows of " + table.caption.textContent);
  field.oninput = () => {
    const wanted = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  };
  table.parentNode.before(field);
}
"""


def render_html(report: Report) -> str:
    """``report`` as a page."""
    ids = (*(item.id for item in report.findings), *(outcome.id for outcome in report.runs))
    known = frozenset(name for name in ids if html_blocks.anchor(name))
    block = verdict(report, known)
    sections = _in_order([fold_tables(section) for section in _sections(report, known) if section.blocks])
    template = template_environment().get_template("report.html.jinja")
    # The script and the hash that allows it; both empty where no table is long.
    page = template.render(
        verdict=block,
        facts=verdict_facts(report),
        sections=sections,
        **(
            {"script": "", "script_hash": ""}
            if not any(has_long(section.blocks) for section in sections)
            else with_script_hash(_SCRIPT)
        ),
        command=report.command,
        explain=f"aotidoctor explain {block.cause}" if block.cause else "",
        icon=verdict_icon(COLORS[block.tone]),
    )
    return page + "\n"


def _in_order(sections: list[PageSection]) -> list[PageSection]:
    """Sections with long tables come behind the host, or last; one that shows what differs stays where it is."""
    late = [section for section in sections if section.id in _LATE and has_long(section.blocks)]
    rest = [section for section in sections if section not in late]
    at = next((number for number, section in enumerate(rest, 1) if section.id == "host"), len(rest))
    return [*rest[:at], *late, *rest[at:]]


def _sections(report: Report, known: frozenset[str]) -> Iterator[PageSection]:
    place = report.localization
    yield PageSection(id="plan", title="Plan", blocks=package_sections.plan_blocks(report, known))
    yield PageSection(id="also", title="Also possible", blocks=other_blocks(report, known))
    yield PageSection(id="log", title="Log", blocks=log_blocks(report.log))
    yield PageSection(id="serving", title="Serving", blocks=package_sections.serving_blocks(report))
    yield PageSection(id="compat", title="Packages and hosts", blocks=package_sections.compat_blocks(report))
    yield PageSection(id="stages", title="Whose fault", blocks=package_sections.stage_blocks(report))
    yield PageSection(id="comparison", title="Against the reference", blocks=package_sections.comparison_blocks(report))
    contract = PageSection(
        id="contract",
        title="Contract and inputs" if report.case.inputs is not None else "Contract",
        blocks=package_sections.contract_blocks(report),
    )
    first = package_sections.is_marked(contract.blocks) or report.command == "inspect"
    if first:
        yield contract
    yield PageSection(id="where", title="Where", blocks=run_sections.place_blocks(place, known))
    yield PageSection(id="calls", title="Calls in order", blocks=run_sections.call_blocks(place))
    yield PageSection(id="values", title="Values of kernels", blocks=run_sections.value_blocks(place))
    if not first:
        yield contract
    yield PageSection(id="evidence", title="Evidence", blocks=evidence_blocks(report, known))
    yield PageSection(id="probes", title="Probes", blocks=run_sections.matrix_blocks(report, known))
    yield PageSection(id="runs", title="Runs", blocks=run_sections.run_blocks(report, known))
    yield PageSection(id="package", title="Package", blocks=package_sections.package_blocks(report))
    yield PageSection(id="unchecked", title="Not checked", blocks=not_checked_blocks(report, known))
    yield PageSection(id="host", title="Host", blocks=package_sections.host_blocks(report))
    yield PageSection(id="settings", title="Debug settings", blocks=package_sections.settings_blocks(report))
    yield PageSection(id="traceback", title="Traceback of aotidoctor", blocks=package_sections.traceback_blocks(report))
    yield PageSection(id="again", title="Again", blocks=package_sections.again_blocks(report, known))


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
    rows = [(leaf.path, package_view.leaf_text(leaf)) for leaf in contract.leaves]
    rows += [(output.path, package_view.output_text(output)) for output in contract.outputs]
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
    rows = [(leaf.path, package_view.leaf_text(leaf)) for leaf in contract.leaves]
    rows += [(output.path, package_view.output_text(output)) for output in contract.outputs]
    width = min(40, max((len(path) for path, _ in rows), default=0))
    lines = [f"{one_line(path):<{width}}  {one_line(expected)}" for path, expected in rows[:_MOST_LEAVES]]
    return "\n".join([*lines, *([f"{len(rows) - _MOST_LEAVES} more"] if len(rows) > _MOST_LEAVES else [])])


def _piece_text(text: str) -> str:
    return escape(plain(text))


def _piece_code(text: str) -> str:
    return f"<code style='white-space:pre-wrap'>{_piece_text(text)}</code>"
