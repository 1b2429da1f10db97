"""Summarize the results of a fleet, and report new failures (``aotidoctor fleet``)."""

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
"""Most clusters that a command is called for; all are in the summary."""


@record
class FleetSummaryRequest:
    """Options of a summary: ``baseline`` and ``accepted`` are paths or None."""

    folders: tuple[str, ...]
    baseline: str | None = None
    accepted: str | None = None
    argv: tuple[str, ...] = ()


def summarize_results(request: FleetSummaryRequest, redactor: Redactor | None) -> FleetOverview:
    """Summarize results, and redact them if there is a ``redactor``. Raises CannotExamineError, UsageError."""
    try:
        from aotidoctor.fleet.summary.summarize import read_baseline, summarize
    except ImportError as error:
        # That of a module of ours is a fault of ours.
        if (error.name or "").partition(".")[0] != "pandas":
            raise
        raise CannotExamineError("the tables of a fleet need pandas: pip install 'aotidoctor[fleet]'") from error
    today = datetime.now(timezone.utc).date()
    entries = read_accepted(request.accepted, today) if request.accepted is not None else ()
    base = read_baseline(request.baseline) if request.baseline is not None else None
    found = summarize(request.folders, baseline=base, accepted=entries, argv=request.argv)
    if redactor is None:
        return found
    return replace(found, summary=redactor.value(found.summary), redact=redactor.value)


def fleet_status(summary: Overview, *, fail_on_new: bool) -> int:
    """The exit status: 1 for new failures, 4 if failures may be hidden, else 0.

    Hidden by: items of the baseline that are not examined any more, a run that has not finished, damaged lines.
    """
    if not fail_on_new:
        return 0
    hidden = summary.blind or summary.unfinished or summary.damaged
    return 1 if summary.news else 4 if hidden else 0


def render_fleet(fleet: FleetOverview, kind: str) -> Iterator[str]:
    """Render ``fleet`` in one of ``FORMATS``, in pieces. Only the modules of the chosen format are imported."""
    if kind in ("html", "junit", "sarif"):
        from aotidoctor.reports.fleet import fleet_files

        if kind == "html":
            yield fleet_files.render_fleet_page(fleet.summary, fleet.rows())
        elif kind == "junit":
            yield fleet_files.render_fleet_junit(fleet.summary, fleet.rows())
        else:
            yield fleet_files.render_fleet_sarif(fleet.summary, explain.name_and_text)
        return
    from aotidoctor.reports.fleet import fleet_text

    if kind == "csv":
        yield from fleet_text.render_items_csv(fleet.rows())
    elif kind == "md":
        yield fleet_text.render_fleet_markdown(fleet.summary)
    elif kind == "chat":
        yield fleet_text.render_chat_line(fleet.summary)
    else:
        yield fleet_text.render_fleet_json(fleet.summary)


def failure_document(message: str, name: str) -> str:
    """The JSON document in place of a summary that failed."""
    from aotidoctor.model.fleet_summary import SUMMARY_SCHEMA
    from aotidoctor.reports.json.json_report import dump_json

    tool = {"name": "aotidoctor", "version": __version__}
    return dump_json({"schema": SUMMARY_SCHEMA, "tool": tool, "verdict": None, name: message})


def hook_words(command: str) -> tuple[str, ...]:
    """Split the command of ``--on-new``, which runs without a shell. Raises UsageError."""
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
