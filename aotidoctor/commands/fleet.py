"""``aotidoctor fleet``: what the results of a whole fleet show together, and what is new in them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from aotidoctor.commands import explain
from aotidoctor.fleet.summary.accepted import read_accepted
from aotidoctor.model.clusters import Overview
from aotidoctor.model.errors import UsageError
from aotidoctor.model.record import record
from aotidoctor.reports.redact import Redactor
from aotidoctor.runner.notify import notify
from aotidoctor.version import __version__

if TYPE_CHECKING:
    from aotidoctor.fleet.summary.summarize import Fleet

FORMATS = ("md", "json", "csv", "html", "sarif", "junit", "chat")
MOST_CALLS = 20
"""Clusters that a command is called for; the others are in the summary."""


@record
class Wanted:
    """What was asked: ``baseline`` and ``accepted`` are paths or None."""

    folders: tuple[str, ...]
    baseline: str | None = None
    accepted: str | None = None
    argv: tuple[str, ...] = ()


def judge(wanted: Wanted, redactor: Redactor | None) -> Fleet:
    """The summary, redacted where there is a ``redactor``. Raises CannotExamineError, UsageError."""
    # pandas is imported here, where its lack can be told.
    from aotidoctor.fleet.summary.baseline import read_baseline  # noqa: PLC0415
    from aotidoctor.fleet.summary.summarize import summarize  # noqa: PLC0415

    today = datetime.now(timezone.utc).date()
    entries = read_accepted(wanted.accepted, today) if wanted.accepted is not None else ()
    base = read_baseline(wanted.baseline) if wanted.baseline is not None else None
    found = summarize(wanted.folders, baseline=base, accepted=entries, argv=wanted.argv)
    return found if redactor is None else replace(found, summary=redactor.value(found.summary))


def status(summary: Overview, *, fail_on_new: bool) -> int:
    """1 for what is new, 4 where something may be hidden, else 0.

    Hidden: items that were examined in the baseline and are not any more, a run that has not finished, damaged lines.
    """
    if not fail_on_new:
        return 0
    hidden = summary.blind or summary.unfinished or summary.damaged
    return 1 if summary.news else 4 if hidden else 0


def rendered(fleet: Fleet, kind: str) -> Iterator[str]:
    """``fleet`` in one of ``FORMATS``, in pieces. Only the chosen format is imported."""
    match kind:
        case "csv":
            from aotidoctor.reports.fleet import table  # noqa: PLC0415

            yield from table.render(fleet.rows())
        case "html":
            from aotidoctor.reports.fleet import page  # noqa: PLC0415

            yield page.render(fleet.summary, fleet.rows())
        case "junit":
            from aotidoctor.reports.fleet import junit  # noqa: PLC0415

            yield junit.render(fleet.summary, fleet.rows())
        case "sarif":
            from aotidoctor.reports.fleet import sarif  # noqa: PLC0415

            yield sarif.render(fleet.summary, explain.name_and_text)
        case "md":
            from aotidoctor.reports.fleet import markdown  # noqa: PLC0415

            yield markdown.render(fleet.summary)
        case "chat":
            from aotidoctor.reports.fleet import chat  # noqa: PLC0415

            yield chat.render(fleet.summary)
        case _:
            from aotidoctor.reports.fleet import document  # noqa: PLC0415

            yield document.render(fleet.summary)


def failure(message: str, name: str) -> str:
    """The JSON document that stands in for a summary that could not be made."""
    from aotidoctor.model.clusters import SUMMARY_SCHEMA  # noqa: PLC0415 - rarely
    from aotidoctor.reports.json.render import dumps  # noqa: PLC0415 - likewise

    tool = {"name": "aotidoctor", "version": __version__}
    return dumps({"schema": SUMMARY_SCHEMA, "tool": tool, "verdict": None, name: message})


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
    from aotidoctor.reports.fleet.document import render_cluster  # noqa: PLC0415 - with --on-new only

    for cluster in summary.news[:MOST_CALLS]:
        problem = notify(words, render_cluster(summary, cluster).encode(), environ)
        if problem:
            warn(f"--on-new: {words[0]}: {problem}")
    if len(summary.news) > MOST_CALLS:
        warn(f"--on-new: called for {MOST_CALLS} of {len(summary.news)} new clusters")
