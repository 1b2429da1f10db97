"""The first screen: cause, subject, looked like → is, how sure, what to do, in that order, each with its evidence."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from markupsafe import Markup

from aotidoctor.model.diagnosis import Diagnosis, Status
from aotidoctor.model.phrases import plural
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports import view
from aotidoctor.reports.headline import headline
from aotidoctor.reports.html import log as html_log
from aotidoctor.reports.html import text
from aotidoctor.reports.text import one_line, seconds, size

_NOTHING = Markup("")
# The rows of the first screen that have a place of their own; an unlabelled one goes on with the row before it.
_PLACED = frozenset(("Subject", "Looked like", "Is", "How sure", "What to do", ""))
_RUN = re.compile(r"\bR[0-9]+\b")


@record
class Verdict:
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


def verdict(report: Report, known: Collection[str]) -> Verdict:
    """The first screen of ``report``; ``known`` are the ids that can be linked."""
    head = headline(report)
    shown = Verdict(word=head.word, tone=head.tone, title=head.text, note=view.partial_note(report))
    named = report.diagnoses and report.cannot_examine is None and report.internal_error is None
    if not named or report.verdict != "problem":
        rows = tuple((row.label, text.linked(row.text, known)) for row in view.first_rows(report))
        return replace(shown, rows=rows)
    return _named(report, report.diagnoses[0], shown, known)


def _named(report: Report, first: Diagnosis, shown: Verdict, known: Collection[str]) -> Verdict:
    found = view.telling(report, first)
    if found is not None and not found.expected and found.observed in first.looked_like:
        found = None  # It says the same once more.
    return replace(
        shown,
        title=one_line(first.title, 600),
        cause=first.cause,
        stage=first.stage or report.stage or "",
        refs=text.links(name for name in first.evidence if name in known),
        subject=one_line(first.subject or ""),
        looked_like=one_line(first.looked_like, 600),
        looked_refs=_symptom(report, first, known),
        observed=one_line(found.observed, 400) if found is not None else "",
        expected=one_line(found.expected, 400) if found is not None else "",
        is_refs=text.link(found.id) if found is not None and found.id in known else _NOTHING,
        sure=first.status.value,
        percent=f"{first.confidence:.0%}",
        because=text.linked(_because(first), known),
        remedy=text.linked(first.remedy.text, known, 1200),
        command=first.remedy.command,
        tried=_tried(first, known) if first.remedy.verified else _NOTHING,
        rows=tuple(
            (row.label, text.linked(row.text, known)) for row in view.first_rows(report) if row.label not in _PLACED
        ),
    )


def _symptom(report: Report, first: Diagnosis, known: Collection[str]) -> Markup:
    """Where the words come from that it looked like: the first run is the failure as the user sees it.

    Of a log it is the event; where nothing was run, they are the words that a run would have had.
    """
    if report.runs:
        return text.links(outcome.id for outcome in report.runs[:1] if outcome.id in known)
    events = (html_log.event_of(report.log, item) for item in view.evidence_of(report, first))
    event = next((event for event in events if event), "")
    return text.link(event, f"line {event[1:]}") if event else _NOTHING


def _because(first: Diagnosis) -> str:
    if first.status is not Status.SUSPECTED:
        return first.confirmation or "gone with the treatment, back without it"
    return f"to confirm: {first.would_confirm}" if first.would_confirm else ""


def _tried(first: Diagnosis, known: Collection[str]) -> Markup:
    runs = [name for name in _RUN.findall(first.confirmation) if name in known]
    return Markup("Tried: with it the failure is gone. {}").format(text.links(runs[-1:]))


def facts(report: Report) -> tuple[tuple[str, Markup], ...]:
    """What was examined, where and when, on one line each."""
    case = report.case
    rows = []
    if view.has_artifact(report):
        digest = f" · sha256 {case.artifact.sha256[:12]}" if case.artifact.sha256 else ""
        rows.append(("Package", text.line(f"{view.artifact_text(report)}{digest}")))
    if report.log is not None:
        log = report.log
        rows.append(("Log", text.line(f"{log.name} ({plural(log.lines, 'line')}, {size(log.size)})")))
    if case.inputs is not None:
        tensors = plural(len(case.inputs.tensors()), "tensor")
        rows.append(("Inputs", text.line(f"{case.inputs.path or case.inputs.form} ({tensors})")))
    elif case.inputs_error is not None:
        rows.append(("Inputs", text.line(str(case.inputs_error))))
    torch = f"torch {case.host.torch.version}" if case.host.torch is not None else "no torch"
    rows.append(("Host", text.line(f"{case.host.system} {case.host.machine}, {torch}")))
    rows += [(label, text.line(named)) for label, named in view.plugin_rows(report)]
    rows.append(("Command", text.code(view.command_text(report.argv))))
    took = f"{report.started} in {seconds(report.seconds)}"
    return (*rows, ("Made", text.line(f"by aotidoctor {report.version}, {took}")))
