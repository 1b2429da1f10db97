"""Describe a log, and write its section: the failures in it, with their causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.evidence import Evidence, FileSource, plural
from aotidoctor.model.report import Report
from aotidoctor.reports.page.blocks import Block, Cell, Pairs, Span, TableBlock, TableLine, code_words
from aotidoctor.reports.text import one_line, size

if TYPE_CHECKING:
    from aotidoctor.model.report import LogEvent, LogPattern, LogReading

_MOST_LISTED = 20
# Below this a match is no more than a lead.
_LEAD = 0.5


def is_log(report: Report) -> bool:
    """Whether a log is all that was examined."""
    return report.command == "classify" and report.log is not None


def log_text(log: LogReading) -> str:
    """Name and size on one line."""
    return f"{one_line(log.name)} ({plural(log.lines, 'line')}, {size(log.size)})"


def log_without_failure(log: LogReading) -> str:
    """State that the log, not the model, shows no failure."""
    warnings = sum(1 for event in log.events if event.level != "error")
    beside = f"; {plural(warnings, 'warning')}" if warnings else ""
    return f"no failure found in {plural(log.lines, 'line')}{beside}"


def log_unknown(log: LogReading) -> str:
    """A failure, and no cause."""
    failures = len(log.unknown) or 1
    them = "it" if failures == 1 else "them"
    return f"the log reports {plural(failures, 'failure')}, and no known cause explains {them}"


def log_unknown_rows(report: Report) -> list[tuple[str, str]]:
    """Label and text: where it fails, what it says, what to run next."""
    log = report.log
    if log is None:
        return []
    rows = [("Fails in", report.stage)] if report.stage else []
    rows += [("Says", f"line {event.first}: {_first(event)}") for event in log.unknown[:1]]
    perhaps = [match for match in log.matches if match.confidence > 0]
    rows += [("Perhaps", f"{match.pattern.cause} ({match.confidence:.0%})") for match in perhaps[:1]]
    return rows + [("Try next" if not at else "", step) for at, step in enumerate(log_next_steps(report))]


def log_next_steps(report: Report) -> tuple[str, ...]:
    """Suggest the next commands."""
    return tuple(step for step in report.extra.get("next", "").split("\n") if step)


def _first(event: LogEvent) -> str:
    """The telling line: of a C++ exception the one with the message."""
    lines = [line.strip() for line in event.text.splitlines() if line.strip()]
    if not lines:
        return event.kind or event.form
    terminated = lines[0].startswith("terminate called") and len(lines) > 1
    return one_line(lines[1] if terminated else lines[0])


EVENTS = 500
"""Events of a log that a page has room for."""


def log_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """The failures that a log contains, and what else it states."""
    log = report.log
    if log is None:
        return ()
    listed = log.events
    if detail <= 0 and len(listed) > _MOST_LISTED:
        matched = [match.event.first for match in log.matches]
        first = [event for event in listed if event.first in matched or event in log.unknown]
        listed = tuple(sorted((first or list(listed))[:_MOST_LISTED], key=lambda event: event.first))
    left = len(log.events) - len(listed)
    # Interleaved writers can begin on one line: the first of them is its anchor.
    anchors = {event.first: event for event in reversed(listed)}
    lines = [_event(event, log, detail, anchor=anchors[event.first] is event) for event in listed]
    table = TableBlock(
        label="Events of the log",
        headings=("Line", "In the log", "Which is"),
        rows=tuple(lines),
        whole=("Line",),
        bare=("Line",),
        ratios={"In the log": 3, "Which is": 2},
        heads=1,
        room=2,
        more=f"{left} more" if left else "",
        noun="more events",
    )
    rows = [
        ("names", ", ".join(f"{name} {text}" for name, text in sorted(log.versions.items()))),
        ("from", ", ".join(one_line(origin) for origin in log.origins[:8])),
        ("not read", "; ".join(log.problems)),
        ("also", f"{log.more_events:,} more, not kept" if log.more_events else ""),
    ]
    facts = [(label, text) for label, text in rows if text]
    return (*((table,) if lines else ()), *((Pairs(rows=facts),) if facts else ()))


def _event(event: LogEvent, log: LogReading, detail: int, *, anchor: bool) -> TableLine:
    """One event: where, what it says, and its cause with the releases that know it."""
    known = next((match for match in log.matches if match.event == event), None)
    times = f" (logged {event.count:,} times)" if event.count > 1 else ""
    origin = f"[{one_line(event.origin)}] " if event.origin else ""
    cause = f"{known.pattern.cause} ({known.confidence:.0%})" if known is not None else ""
    if event.tainted:
        what = "after an error that leaves the GPU unusable: unreliable"
    elif event.echo_of is not None:
        what = f"an echo of line {event.echo_of}" + (f": {cause}" if cause else "")
    elif known is None:
        what = "no known cause" if event.level == "error" else "a warning"
    else:
        what = cause if known.confidence >= _LEAD else f"perhaps {cause}"
    releases = _releases(known.pattern) if known is not None and detail > 0 else ""
    tone = "dim" if event.echo_of or event.tainted else "unsure" if event.level != "error" else "bad"
    place = str(event.first) if event.last <= event.first else f"{event.first}-{event.last}"
    cells = (
        Cell(place, tone, "num"),
        Cell(code_words(f"{origin}{_first(event)}{times}")),
        Cell((Span(what), *((Span(f"; {releases}", "dim"),) if releases else ()))),
    )
    return TableLine(cells, id=f"L{event.first}" if anchor else "")


def _releases(pattern: LogPattern) -> str:
    """``torch: known in 2.6-2.8, fixed in 2.9``; empty where neither is known."""
    parts = (f"known in {pattern.known}" if pattern.known else "", f"fixed in {pattern.fixed}" if pattern.fixed else "")
    text = ", ".join(word for word in parts if word)
    return f"{pattern.component}: {text}" if text else ""


def event_of(log: LogReading | None, item: Evidence) -> str:
    """The anchor of the event that a finding speaks of; empty where it speaks of none that is shown."""
    if log is None or not isinstance(item.source, FileSource) or item.source.line is None:
        return ""
    at = item.source.line if item.code.startswith("AD-LOG-") else -1
    return next((f"L{event.first}" for event in log.events[:EVENTS] if event.first <= at <= event.last), "")
