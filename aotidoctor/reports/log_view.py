"""What a log said, as rows: the words are here, the layout is in the formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aotidoctor.model.phrases import plural
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports.text import one_line, size

if TYPE_CHECKING:
    from aotidoctor.model.log import LogEvent, LogMatch, LogReading

HEADINGS = ("Line", "In the log", "Which is")
_SHOWN = 20
# Below this a match is no more than a lead.
_LEAD = 0.5


@record
class LogRow:
    """One failure. ``tone`` is ``error``, ``warn`` or ``info``."""

    line: str
    said: str
    what: str
    tone: str


def is_log(report: Report) -> bool:
    """Whether a log is all that was examined."""
    return report.command == "classify" and report.log is not None


def log_text(log: LogReading) -> str:
    """Name and size on one line."""
    return f"{one_line(log.name)} ({plural(log.lines, 'line')}, {size(log.size)})"


def calm(log: LogReading) -> str:
    """Nothing found: said of the log, not of the model."""
    warnings = sum(1 for event in log.events if event.level != "error")
    beside = f"; {plural(warnings, 'warning')}" if warnings else ""
    return f"no failure found in {plural(log.lines, 'line')}{beside}"


def unknown(log: LogReading) -> str:
    """A failure, and no cause."""
    failures = len(log.unknown) or 1
    them = "it" if failures == 1 else "them"
    return f"the log reports {plural(failures, 'failure')}, and no known cause explains {them}"


def unknown_rows(report: Report) -> list[tuple[str, str]]:
    """Label and text: where it fails, what it says, what to run next."""
    log = report.log
    if log is None:
        return []
    rows = [("Fails in", report.stage)] if report.stage else []
    rows += [("Says", f"line {event.first}: {_first(event)}") for event in log.unknown[:1]]
    perhaps = [match for match in log.matches if match.confidence > 0]
    rows += [("Perhaps", f"{match.pattern.cause} ({match.confidence:.0%})") for match in perhaps[:1]]
    return rows + [("Try next" if not at else "", step) for at, step in enumerate(next_steps(report))]


def next_steps(report: Report) -> tuple[str, ...]:
    """What to run next."""
    return tuple(step for step in report.extra.get("next", "").split("\n") if step)


def facts(log: LogReading) -> list[tuple[str, str]]:
    """Label and text: what else the log reports the machine and the processes."""
    rows = [
        ("names", ", ".join(f"{name} {text}" for name, text in sorted(log.versions.items()))),
        ("from", ", ".join(one_line(origin, 60) for origin in log.origins[:8])),
        ("not read", "; ".join(log.problems)),
        ("also", f"{log.more_events:,} more, not kept" if log.more_events else ""),
    ]
    return [(label, text) for label, text in rows if text]


def rows(log: LogReading, *, whole: bool = False) -> tuple[list[LogRow], int]:
    """The failures in the order of the log, and how many are left out."""
    shown = log.events if whole else _telling(log)
    return [_row(event, log) for event in shown], len(log.events) - len(shown)


def _telling(log: LogReading) -> Sequence[LogEvent]:
    if len(log.events) <= _SHOWN:
        return log.events
    matched = [match.event.first for match in log.matches]
    first = [event for event in log.events if event.first in matched or event in log.unknown]
    return sorted((first or list(log.events))[:_SHOWN], key=lambda event: event.first)


def _row(event: LogEvent, log: LogReading) -> LogRow:
    known = [match for match in log.matches if match.event == event]
    times = f" (logged {event.count:,} times)" if event.count > 1 else ""
    origin = f"[{one_line(event.origin, 40)}] " if event.origin else ""
    return LogRow(
        line=str(event.first) if event.last <= event.first else f"{event.first}-{event.last}",
        said=f"{origin}{_first(event)}{times}",
        what=_what(event, known),
        tone="info" if event.echo_of or event.tainted else "warn" if event.level != "error" else "error",
    )


def _what(event: LogEvent, known: Sequence[LogMatch]) -> str:
    cause = f"{known[0].pattern.cause} ({known[0].confidence:.0%})" if known else ""
    if event.tainted:
        return "after an error that leaves the GPU unusable: unreliable"
    if event.echo_of is not None:
        return f"an echo of line {event.echo_of}" + (f": {cause}" if cause else "")
    if not known:
        return "no known cause" if event.level == "error" else "a warning"
    return cause if known[0].confidence >= _LEAD else f"perhaps {cause}"


def _first(event: LogEvent) -> str:
    """The telling line: of a C++ exception the one with the message."""
    lines = [line.strip() for line in event.text.splitlines() if line.strip()]
    if not lines:
        return event.kind or event.form
    terminated = lines[0].startswith("terminate called") and len(lines) > 1
    return one_line(lines[1] if terminated else lines[0], 200)
