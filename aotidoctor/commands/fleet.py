"""``aotidoctor fleet``: summarize the results of a fleet, and report what is new in them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from aotidoctor.commands import explain
from aotidoctor.fleet.summary.accepted import read_accepted
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.fleet_summary import Overview
from aotidoctor.model.record import record
from aotidoctor.reports.redact.redactor import Redactor
from aotidoctor.runner.helper_processes import notify
from aotidoctor.version import __version__

if TYPE_CHECKING:
    from aotidoctor.fleet.summary.summarize import FleetOverview

FORMATS = ("md", "json", "csv", "html", "sarif", "junit", "chat")
MOST_CALLS = 20
"""Clusters that a command is called for; the others are in the summary."""


@record
class FleetSummaryRequest:
    """What was asked: ``baseline`` and ``accepted`` are paths or None."""

    folders: tuple[str, ...]
    baseline: str | None = None
    accepted: str | None = None
    argv: tuple[str, ...] = ()


def summarize_results(wanted: FleetSummaryRequest, redactor: Redactor | None) -> FleetOverview:
    """The summary, redacted where there is a ``redactor``. Raises CannotExamineError, UsageError."""
    try:
        from aotidoctor.fleet.summary.summarize import read_baseline, summarize
    except ImportError as error:
        raise CannotExamineError("the tables of a fleet need pandas: pip install 'aotidoctor[fleet]'") from error
    today = datetime.now(timezone.utc).date()
    entries = read_accepted(wanted.accepted, today) if wanted.accepted is not None else ()
    base = read_baseline(wanted.baseline) if wanted.baseline is not None else None
    found = summarize(wanted.folders, baseline=base, accepted=entries, argv=wanted.argv)
    return found if redactor is None else replace(found, summary=redactor.value(found.summary))


def fleet_status(summary: Overview, *, fail_on_new: bool) -> int:
    """1 for what is new, 4 where something may be hidden, else 0.

    Hidden: items that were examined in the baseline and are not any more, a run that has not finished, damaged lines.
    """
    if not fail_on_new:
        return 0
    hidden = summary.blind or summary.unfinished or summary.damaged
    return 1 if summary.news else 4 if hidden else 0


def render_fleet(fleet: FleetOverview, kind: str) -> Iterator[str]:
    """``fleet`` in one of ``FORMATS``, in pieces. Only the chosen format is imported."""
    match kind:
        case "csv":
            from aotidoctor.reports.fleet import fleet_text

            yield from fleet_text.render_items_csv(fleet.rows())
        case "html":
            from aotidoctor.reports.fleet import fleet_files

            yield fleet_files.render_fleet_page(fleet.summary, fleet.rows())
        case "junit":
            from aotidoctor.reports.fleet import fleet_files

            yield fleet_files.render_fleet_junit(fleet.summary, fleet.rows())
        case "sarif":
            from aotidoctor.reports.fleet import fleet_files

            yield fleet_files.render_fleet_sarif(fleet.summary, explain.name_and_text)
        case "md":
            from aotidoctor.reports.fleet import fleet_text

            yield fleet_text.render_fleet_markdown(fleet.summary)
        case "chat":
            from aotidoctor.reports.fleet import fleet_text

            yield fleet_text.render_chat_line(fleet.summary)
        case _:
            from aotidoctor.reports.fleet import fleet_text

            yield fleet_text.render_fleet_json(fleet.summary)


def failure_document(message: str, name: str) -> str:
    """The JSON document that stands in for a summary that could not be made."""
    from aotidoctor.model.fleet_summary import SUMMARY_SCHEMA
    from aotidoctor.reports.json.json_report import dump_json

    tool = {"name": "aotidoctor", "version": __version__}
    return dump_json({"schema": SUMMARY_SCHEMA, "tool": tool, "verdict": None, name: message})


def hook_words(command: str) -> tuple[str, ...]:
    """The words of ``--on-new``: no shell reads them. Raises UsageError."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"--on-new: {error}") from error
    if not words:
        raise UsageError("--on-new: expected a command")
    return words


def call_for_news(
    summary: Overview, words: Sequence[str], environ: Mapping[str, str], warn: Callable[[str], None]
) -> None:
    """Call the command once for each new cluster, with the cluster as JSON on its input; a failure is a warning."""
    from aotidoctor.reports.fleet.fleet_text import render_cluster_json

    for cluster in summary.news[:MOST_CALLS]:
        problem = notify(words, render_cluster_json(summary, cluster).encode(), environ)
        if problem:
            warn(f"--on-new: {words[0]}: {problem}")
    if len(summary.news) > MOST_CALLS:
        warn(f"--on-new: called for {MOST_CALLS} of {len(summary.news)} new clusters")
