"""What was found, what else it may be, what was not looked at, and what a log said."""

from __future__ import annotations

from collections.abc import Collection

from markupsafe import Markup

from aotidoctor.model.evidence import Evidence, RunSource
from aotidoctor.model.log import LogEvent, LogReading
from aotidoctor.model.report import Report
from aotidoctor.reports import html_text, view
from aotidoctor.reports.html_blocks import Block, Cell, Line, Note, Pairs, Table, cell, cut, mono, number
from aotidoctor.reports.text import plural, size

_ROOM = 500
_TONES = {"info": "dim", "warn": "unsure", "error": "bad"}


def evidence_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """All findings, each with an anchor."""
    lines, more = cut("findings", [_finding(report, item, known) for item in report.findings], _ROOM)
    if not lines:
        return ()
    headings = ("", "Code", "About", "Observed", "Expected", "Source")
    return (Table(label="Evidence", headings=headings, rows=lines, stacks=True, look="evidence"), *more)


def _finding(report: Report, item: Evidence, known: Collection[str]) -> Line:
    tone = _TONES[item.severity.value]
    name = Markup('<b>{}</b> <span class="tag {}">{}</span>').format(
        html_text.line(item.id, 20), tone, item.severity.value
    )
    used = [found.cause for found in report.diagnoses if item.id in found.evidence]
    code = Markup("{} {}").format(html_text.code(item.code), html_text.line(item.kind, 60))
    if used:
        code += Markup('<span class="dim"> · shows {}</span>').format(html_text.line(", ".join(used)))
    cells = (
        cell(name, heads=True),
        cell(code),
        mono(item.subject or ""),
        cell(html_text.linked(_observed(item), known, 900)),
        cell(html_text.linked(item.expected, known)),
        cell(_source(item, known), tone="dim"),
    )
    return Line(cells=cells, tone=tone, id=html_text.anchor(item.id))


def _observed(item: Evidence) -> str:
    """What was seen, and the message where that says more."""
    parts = (item.observed, "" if view.adds_nothing(item) else item.message)
    return " — ".join(part for part in parts if part)


def _source(item: Evidence, known: Collection[str]) -> Markup:
    if isinstance(item.source, RunSource) and item.source.run in known:
        stream = "" if item.source.stream == "result" else item.source.stream
        where = stream + (f":{item.source.line}" if item.source.line is not None else "")
        return Markup("{} {}").format(html_text.link(item.source.run), html_text.line(where))
    return html_text.line(view.short_source(item.source))


def other_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """The causes after the first."""
    lines = tuple(
        Line(
            cells=(
                cell(html_text.code(item.cause), heads=True),
                mono(item.subject or ""),
                cell(html_text.line(item.title)),
                cell(html_text.linked(view.how_sure(item), known)),
                cell(html_text.links(name for name in item.evidence if name in known)),
            )
        )
        for item in report.diagnoses[1:]
    )
    headings = ("Cause", "Subject", "What it is", "How sure", "Evidence")
    return (Table(label="Also possible", headings=headings, rows=lines, stacks=True),) if lines else ()


def not_checked_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """What was not looked at, by reason."""
    grouped: dict[str, list[str]] = {}
    for item in report.not_checked:
        grouped.setdefault(item.reason, []).append(f"{item.name} ({item.code})")
    lines = [
        Line(cells=(cell(html_text.linked(reason, known, 900), heads=True), cell(", ".join(names), tone="dim")))
        for reason, names in grouped.items()
    ]
    shown, more = cut("reasons", lines, _ROOM)
    if not shown:
        return ()
    return (Table(label="Not checked", headings=("Because", "Not checked"), rows=shown, stacks=True, look="why"), *more)


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
    rows = tuple((label, html_text.line(text, 900)) for label, text in pairs if text)
    lines, more = cut("events", [_event(log, event) for event in log.events], _ROOM)
    headings = ("Line", "Form", "Says", "Known as", "Relation")
    table = (Table(label="Events of the log", headings=headings, rows=lines, stacks=True),) if lines else ()
    left = f"and {log.more_events:,} more events, not kept" if log.more_events else ""
    return (Pairs(rows=rows), *table, *more, *((Note(body=html_text.line(left), tone="dim"),) if left else ()))


def _event(log: LogReading, event: LogEvent) -> Line:
    known = [match for match in log.matches if match.event == event]
    causes = dict.fromkeys(match.pattern.cause for match in known)
    named = Markup(", ").join(html_text.code(cause) for cause in causes)
    if event in log.unknown:
        named = html_text.line("no pattern knows it")
    span = str(event.first) if event.last == event.first else f"{event.first}-{event.last}"
    form = " ".join(part for part in (event.form, event.kind) if part)
    cells = (
        number(span),
        cell(form, tone="dim"),
        mono(event.text),
        cell(named),
        _relation(event, [match.text for match in known if match.text.strip() != event.text.strip()]),
    )
    echo = event.echo_of is not None or event.tainted
    return Line(cells=cells, tone="dim" if echo else "bad" if known else "")


def _relation(event: LogEvent, said: list[str]) -> Cell:
    """What an event is to the others, who wrote it, and the line that gave it away."""
    parts = (
        f"repeats or follows from line {event.echo_of}" if event.echo_of is not None else "",
        "after a CUDA error: means nothing" if event.tainted else "",
        f"said {event.count:,} times" if event.count > 1 else "",
        event.origin,
        said[0] if said else "",
    )
    return cell("; ".join(part for part in parts if part), tone="dim")
