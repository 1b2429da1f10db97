"""What was found, what else it may be, and what was not looked at."""

from __future__ import annotations

from collections.abc import Collection

from markupsafe import Markup

from aotidoctor.model.evidence import Evidence, RunSource
from aotidoctor.model.report import Report
from aotidoctor.reports import view
from aotidoctor.reports.html import log, text
from aotidoctor.reports.html.blocks import Block, Line, Table, cell, cut, mono

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
    name = Markup('<b>{}</b> <span class="tag {}">{}</span>').format(text.line(item.id, 20), tone, item.severity.value)
    used = [found.cause for found in report.diagnoses if item.id in found.evidence]
    code = Markup("{} {}").format(text.code(item.code), text.line(item.kind, 60))
    if used:
        code += Markup('<span class="dim"> · shows {}</span>').format(text.line(", ".join(used)))
    cells = (
        cell(name, heads=True),
        cell(code),
        mono(item.subject or ""),
        cell(text.linked(_observed(item), known, 900)),
        cell(text.linked(item.expected, known)),
        cell(_source(report, item, known), tone="dim"),
    )
    return Line(cells=cells, tone=tone, id=text.anchor(item.id))


def _observed(item: Evidence) -> str:
    """What was seen, and the message where that says more."""
    parts = (item.observed, "" if view.adds_nothing(item) else item.message)
    return " — ".join(part for part in parts if part)


def _source(report: Report, item: Evidence, known: Collection[str]) -> Markup:
    if isinstance(item.source, RunSource) and item.source.run in known:
        stream = "" if item.source.stream == "result" else item.source.stream
        where = stream + (f":{item.source.line}" if item.source.line is not None else "")
        return Markup("{} {}").format(text.link(item.source.run), text.line(where))
    shown = view.short_source(item.source)
    event = log.event_of(report.log, item)
    return text.link(event, shown) if event else text.line(shown)


def other_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """The causes after the first."""
    lines = tuple(
        Line(
            cells=(
                cell(text.code(item.cause), heads=True),
                mono(item.subject or ""),
                cell(text.line(item.title)),
                cell(text.linked(view.how_sure(item), known)),
                cell(text.links(name for name in item.evidence if name in known)),
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
        Line(
            cells=(
                cell(text.linked(reason, known, 900), heads=True),
                cell(text.line(", ".join(names), 4000), tone="dim"),
            )
        )
        for reason, names in grouped.items()
    ]
    shown, more = cut("reasons", lines, _ROOM)
    if not shown:
        return ()
    return (Table(label="Not checked", headings=("Because", "Not checked"), rows=shown, stacks=True, look="why"), *more)
