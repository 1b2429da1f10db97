"""Describe runs, probes, log events and served models as rows of text for the formats for people.

The table of probes is AD-RUN-029: how often each probe failed, how, where, and whether its setting took effect.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from aotidoctor.model.evidence import Evidence, FileSource, Severity, plural
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.model.run import Ending, Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.reports.package_view import dim_text
from aotidoctor.reports.text import one_line, seconds, size

if TYPE_CHECKING:
    from aotidoctor.model.report import LogEvent, LogReading
    from aotidoctor.model.serving_config import NameRow


# How child runs ended.
def outcome_failed(outcome: Outcome) -> bool:
    """True unless the child ended by itself with its done-marker and without an exception."""
    match outcome.ending:
        case Exited(code=0, done=True):
            return outcome.error is not None
        case _:
            return True


def first_failed(outcomes: Iterable[Outcome]) -> Outcome | None:
    """The first run that failed."""
    return next(filter(outcome_failed, outcomes), None)


def ending_text(ending: Ending) -> str:
    """Describe the end of a child in a few words."""
    match ending:
        case Exited(code=0, done=True):
            return "ok"
        case Exited(code=code, done=done):
            return f"exit {code}" + ("" if done else " without a result")
        case Signalled(name=name, core_dumped=core):
            return name + (", core dumped" if core else "")
        case TimedOut(limit=limit):
            return f"no end within {seconds(limit)}"
        case OutOfMemory(reason=reason):
            return f"out of memory ({one_line(reason)})"
        case NotStarted(reason=reason):
            return f"not started ({one_line(reason)})"


def run_ending(outcome: Outcome) -> str:
    """``ending_text``, or ``raised Type`` when the worker caught an exception."""
    if outcome.error is not None:
        return f"raised {one_line(outcome.error.type)}"
    if outcome.request.job == "watch" and isinstance(outcome.ending, Exited):
        # A program of the user's knows nothing of done-markers.
        return f"exit {outcome.ending.code}" if outcome.ending.code else "ok"
    return ending_text(outcome.ending)


def took_effect(outcome: Outcome) -> str:
    """``yes``, ``no`` or ``unknown`` where the run changed a setting; empty where it changed none."""
    if outcome.took_effect is None:
        return "unknown" if outcome.request.env else ""
    return "yes" if outcome.took_effect else "no"


def env_text(env: Mapping[str, str | None]) -> str:
    """Changes of the environment as a shell writes them."""
    return " ".join(
        f"{name}={shlex.quote(value)}" if value is not None else f"-u {name}" for name, value in env.items()
    )


def last_words(outcome: Outcome) -> str:
    """The exception, or the last line that was printed."""
    if outcome.error is not None:
        return one_line(f"{outcome.error.type}: {outcome.error.message}")
    return one_line((outcome.stderr_tail.strip().splitlines() or [""])[-1])


# The table of probes.
PROBES_CODE = "AD-RUN-029"
PROBES_TITLE = "Probes"
PROBE_HEADINGS = ("Probe", "Failed", "How", "Where", "Setting acted")
_ACTED = {True: "yes", False: "no", None: "unknown"}


def probe_rows(report: Report) -> list[tuple[str, ...]]:
    """One row per probe in the order of the ladder; empty where there is no such table."""
    found = next((item for item in report.findings if item.code == PROBES_CODE), None)
    return [] if found is None else _probe_values(found)


def probes_verdict(report: Report) -> str:
    """State the conclusion from the pattern of failures."""
    found = next((item for item in report.findings if item.code == PROBES_CODE), None)
    return "" if found is None else one_line(found.observed.partition(": ")[0])


def _probe_values(found: Evidence) -> list[tuple[str, ...]]:
    values = [found.facts.get(name) for name in ("rungs", "failed", "runs", "seen", "places", "took_effect")]
    columns = [value if isinstance(value, tuple) else () for value in values]
    return [
        (
            str(probe),
            f"{failed} of {runs}",
            one_line(str(seen)),
            one_line(str(place)),
            # The plain run changes nothing.
            "" if probe == "plain_run" else _ACTED.get(acted, "unknown"),
        )
        for probe, failed, runs, seen, place, acted in zip(*columns, strict=False)
    ]


# The events of a log.
LOG_HEADINGS = ("Line", "In the log", "Which is")
_MOST_LISTED = 20
# Below this a match is no more than a lead.
_LEAD = 0.5


@record
class LogRow:
    """One failure. ``tone`` is ``error``, ``warn`` or ``info``."""

    line: str
    message: str
    what: str
    tone: str


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


def log_facts(log: LogReading) -> list[tuple[str, str]]:
    """Label and text: what else the log reports the machine and the processes."""
    rows = [
        ("names", ", ".join(f"{name} {text}" for name, text in sorted(log.versions.items()))),
        ("from", ", ".join(one_line(origin) for origin in log.origins[:8])),
        ("not read", "; ".join(log.problems)),
        ("also", f"{log.more_events:,} more, not kept" if log.more_events else ""),
    ]
    return [(label, text) for label, text in rows if text]


def log_rows(log: LogReading, *, whole: bool = False) -> tuple[list[LogRow], int]:
    """The failures in the order of the log, and how many are left out."""
    listed = log.events
    if not whole and len(listed) > _MOST_LISTED:
        matched = [match.event.first for match in log.matches]
        first = [event for event in listed if event.first in matched or event in log.unknown]
        listed = tuple(sorted((first or list(listed))[:_MOST_LISTED], key=lambda event: event.first))
    return [_log_row(event, log) for event in listed], len(log.events) - len(listed)


def _log_row(event: LogEvent, log: LogReading) -> LogRow:
    known = [match for match in log.matches if match.event == event]
    times = f" (logged {event.count:,} times)" if event.count > 1 else ""
    origin = f"[{one_line(event.origin)}] " if event.origin else ""
    cause = f"{known[0].pattern.cause} ({known[0].confidence:.0%})" if known else ""
    if event.tainted:
        what = "after an error that leaves the GPU unusable: unreliable"
    elif event.echo_of is not None:
        what = f"an echo of line {event.echo_of}" + (f": {cause}" if cause else "")
    elif not known:
        what = "no known cause" if event.level == "error" else "a warning"
    else:
        what = cause if known[0].confidence >= _LEAD else f"perhaps {cause}"
    return LogRow(
        line=str(event.first) if event.last <= event.first else f"{event.first}-{event.last}",
        message=f"{origin}{_first(event)}{times}",
        what=what,
        tone="info" if event.echo_of or event.tainted else "warn" if event.level != "error" else "error",
    )


def _first(event: LogEvent) -> str:
    """The telling line: of a C++ exception the one with the message."""
    lines = [line.strip() for line in event.text.splitlines() if line.strip()]
    if not lines:
        return event.kind or event.form
    terminated = lines[0].startswith("terminate called") and len(lines) > 1
    return one_line(lines[1] if terminated else lines[0])


# The models of a Triton repository, each with its rules.
RULE_HEADINGS = ("Rule", "Line", "What happens", "Remedy")
# What a message does not say by itself.
_LETTERS: Mapping[object, str] = {"S": "silently wrong: ", "I": "note: "}


@record
class RuleRow:
    """One finding. ``severity`` is ``error``, ``warn`` or ``info``; ``about`` is its subject in the model."""

    rule: str
    line: str
    what: str
    remedy: str
    severity: str
    about: str


@record
class ModelRows:
    """A model with its rows, the worst first."""

    name: str
    rows: tuple[RuleRow, ...]


def is_serving(report: Report) -> bool:
    """Whether the report is one about models of a server."""
    return report.command == "triton" and bool(report.extra.get("release"))


def model_rows(report: Report, *, notes: bool) -> tuple[ModelRows, ...]:
    """All models that were judged; ``notes`` includes findings without a complaint."""
    found = [item for item in report.findings if notes or item.severity is not Severity.INFO]
    return tuple(
        ModelRows(name=name, rows=tuple(_rule_row(item) for item in found if item.facts.get("model") == name))
        for name in served_names(report)
    )


def served_names(report: Report) -> tuple[str, ...]:
    """The models that were judged."""
    return tuple(name for name in report.extra.get("models", "").split(", ") if name)


def release_text(report: Report) -> str:
    """``Triton 26.05 (server 2.69)``."""
    server = report.extra.get("server", "unknown")
    return f"Triton {report.extra['release']}" + (f" (server {server})" if server != "unknown" else "")


def serving_summary(report: Report) -> str:
    """The headline of a repository in which nothing is wrong."""
    models = served_names(report)
    who = models[0] if len(models) == 1 else plural(len(models), "model")
    return f"{who}: nothing that {release_text(report)} would fail on"


def _rule_row(item: Evidence) -> RuleRow:
    source = item.source
    line = ""
    if isinstance(source, FileSource):
        name = source.file.rpartition("/")[2]
        # The config is what the table is about; another file has to be named.
        line = name if source.line is None else str(source.line) if name == "config.pbtxt" else f"{name}:{source.line}"
    subject = (item.subject or "").partition(": ")[2]
    consequence = _LETTERS.get(item.facts.get("consequence"), "")
    observation = f"{item.observed}; " if item.observed and item.observed not in item.message else ""
    return RuleRow(
        rule=item.code.rpartition("-")[2],
        line=one_line(line),
        what=one_line(f"{consequence}{f'{subject}: ' if subject else ''}{observation}{item.message}", 500),
        remedy=one_line(str(item.facts.get("remedy") or ""), 300),
        severity=item.severity.value,
        about=subject,
    )


# Tensors of a package under Triton's names.
NAME_HEADINGS = ("Path", "Number", "Name", "dtype", "Type", "Dims")
_KINDS: Mapping[str, str] = {
    "unknown": "unknown whether it is a tensor",
    "value": "not a tensor: baked in at export",
    "empty": "not a tensor: an empty dict",
    "nested": "not a tensor: a container inside a keyword",
    "number": "a number: cannot be sent",
    "none": "None: leave it out",
    "shifted": "after an empty dict: answers with a different output",
}


def name_tables(report: Report) -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]:
    """Title and rows of the inputs, and of the outputs; empty if names were not requested."""
    table = report.names
    if table is None:
        return ()
    sides = (("Inputs", table.inputs), ("Outputs", table.outputs))
    return tuple((f"{title} for Triton {table.release}", tuple(map(_name_row, rows))) for title, rows in sides if rows)


def _name_row(row: NameRow) -> tuple[str, ...]:
    name = "lost: a different output has its name" if row.lost else row.forward or "any, in this order"
    dims = f"[{', '.join(map(dim_text, row.dims))}]" if row.dims is not None else "…"
    return (row.path, row.ordinal, name, row.dtype or "", row.data_type or "", _KINDS.get(row.kind, dims))


def names_summary(report: Report) -> str:
    """``nested: 3 inputs, 1 output on Triton 26.05 (server 2.69)``."""
    table = report.names
    if table is None:
        return ""
    counts = f"{plural(len(table.inputs), 'input')}, {plural(len(table.outputs), 'output')}"
    return f"{report.extra.get('models', '')}: {counts} on {release_text(report)}"
