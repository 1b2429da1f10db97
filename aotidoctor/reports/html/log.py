"""What a log said: its events in order, with the causes that know them."""

from __future__ import annotations

from markupsafe import Markup

from aotidoctor.model.evidence import Evidence, FileSource
from aotidoctor.model.log import LogEvent, LogPattern, LogReading
from aotidoctor.model.phrases import plural
from aotidoctor.reports.html import text as html_text
from aotidoctor.reports.html.blocks import Block, Cell, Line, Note, Pairs, Table, cell, cut, mono
from aotidoctor.reports.text import size

_ROOM = 500


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
    # Interleaved writers can begin on one line: the first of them is its anchor.
    first = {event.first: event for event in reversed(log.events)}
    lines, more = cut("events", [_event(log, event, anchor=first[event.first] is event) for event in log.events], _ROOM)
    headings = ("Line", "Form", "Says", "Known as", "Relation")
    table = (Table(label="Events of the log", headings=headings, rows=lines, stacks=True),) if lines else ()
    left = f"and {log.more_events:,} more events, not kept" if log.more_events else ""
    return (Pairs(rows=rows), *table, *more, *((Note(body=html_text.line(left), tone="dim"),) if left else ()))


def _event(log: LogReading, event: LogEvent, *, anchor: bool) -> Line:
    known = [match for match in log.matches if match.event == event]
    named = Markup(" ").join(dict.fromkeys(_named(match.pattern) for match in known))
    if event in log.unknown:
        named = html_text.line("no pattern matches it")
    span = str(event.first) if event.last == event.first else f"{event.first}-{event.last}"
    form = " ".join(part for part in (event.form, event.kind) if part)
    cells = (
        cell(span, look="num"),
        cell(form, tone="dim"),
        mono(event.text),
        cell(named),
        _relation(event, [match.text for match in known if match.text.strip() != event.text.strip()]),
    )
    echo = event.echo_of is not None or event.tainted
    return Line(cells=cells, tone="dim" if echo else "bad" if known else "", id=_anchor(event) if anchor else "")


def _named(pattern: LogPattern) -> Markup:
    """The cause, and the releases in which it is known or mended."""
    told = (f"known in {pattern.known}" if pattern.known else "", f"fixed in {pattern.fixed}" if pattern.fixed else "")
    releases = ", ".join(word for word in told if word)
    shown = html_text.dim(f"{pattern.component}: {releases}" if releases else "")
    return Markup("{} {}").format(html_text.code(pattern.cause), shown)


def _anchor(event: LogEvent) -> str:
    return f"L{event.first}"


def event_of(log: LogReading | None, item: Evidence) -> str:
    """The anchor of the event that a finding speaks of; empty where it speaks of none that is shown."""
    if log is None or not isinstance(item.source, FileSource) or item.source.line is None:
        return ""
    at = item.source.line if item.code.startswith("AD-LOG-") else -1
    return next((_anchor(event) for event in log.events[:_ROOM] if event.first <= at <= event.last), "")


def _relation(event: LogEvent, said: list[str]) -> Cell:
    """What an event is to the others, who wrote it, and the line that gave it away."""
    parts = (
        f"repeats or follows from line {event.echo_of}" if event.echo_of is not None else "",
        "after a CUDA error: unreliable" if event.tainted else "",
        f"logged {event.count:,} times" if event.count > 1 else "",
        event.origin,
        said[0] if said else "",
    )
    return cell("; ".join(part for part in parts if part), tone="dim")
