"""The report as JUnit XML in the form that Jenkins and Surefire agree on: one suite, one case per check, probe or code.

A case fails when something at or above the severity that decides the exit status was found; what was not looked at is
skipped with its reason; what broke inside aotidoctor is an error. Characters that XML cannot hold are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotidoctor.model.evidence import Evidence, NotChecked, RunSource
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports import run_view, view
from aotidoctor.reports.headline import headline
from aotidoctor.reports.junit_xml import Case, document
from aotidoctor.reports.places import finding_text
from aotidoctor.reports.status import FAIL_ON
from aotidoctor.reports.text import one_line, tail

_MESSAGE = 400


@record
class _Asked:
    """What is known of one code."""

    code: str
    name: str
    findings: Sequence[Evidence]
    unseen: NotChecked | None


def render(report: Report, fail_on: str = "error", asked: Mapping[str, str] | None = None) -> str:
    """``report`` as XML. ``asked`` are the checks that were asked, code to name: those without a finding passed."""
    first = report.diagnoses[0] if report.diagnoses else None
    properties = {
        "tool": f"aotidoctor {report.version}",
        "command": view.command_text(report.argv),
        "verdict": report.verdict,
        "stage": report.stage or "",
        "cause": first.cause if first is not None else "",
        "signature": report.signature or "",
        "package": report.case.artifact.path,
    }
    cases, name = _cases(report, fail_on, asked or {}), f"aotidoctor {report.command}"
    head = headline(report)
    printed = "\n".join([f"{head.word}: {head.text}", *view.first_lines(report)])
    seconds = max(report.seconds, 0)
    return document(name, cases, seconds=seconds, at=report.started, properties=properties, printed=printed)


def _cases(report: Report, fail_on: str, asked: Mapping[str, str]) -> list[Case]:
    broken = [_broken(report)] if report.internal_error or report.cannot_examine else []
    unseen = {item.code: item for item in report.not_checked}
    found: dict[str, list[Evidence]] = {}
    for finding in report.findings:
        found.setdefault(finding.code, []).append(finding)
    codes = [*asked, *(code for code in found if code not in asked)]
    codes += [code for code in unseen if code not in codes]
    if broken and not found and not unseen:
        return broken  # Nothing was asked.
    about = {item.code: item.name for item in report.not_checked} | dict(asked)
    judged = [
        _Asked(code=code, name=about.get(code, ""), findings=found.get(code, []), unseen=unseen.get(code))
        for code in codes
    ]
    return [*broken, *(_judged(report, item, fail_on) for item in judged), *_runs(report)]


def _broken(report: Report) -> Case:
    text = report.internal_error or report.cannot_examine or ""
    message = one_line((text.strip().splitlines() or [""])[-1], _MESSAGE)
    return Case(
        name="examination", family="aotidoctor", outcome="error", kind="examination", message=message, text=text
    )


def _judged(report: Report, asked: _Asked, fail_on: str) -> Case:
    """The case of one code."""
    findings, unseen = asked.findings, asked.unseen
    title, family = f"{asked.code} {asked.name}".strip(), f"aotidoctor.{asked.code.rpartition('-')[0]}"
    threshold = FAIL_ON.index(fail_on)
    bad = [item for item in findings if item.severity.rank >= threshold]
    text = "\n\n".join(_told(report, item) for item in findings)
    if bad:
        worst = max(bad, key=lambda item: item.severity.rank)
        message = one_line(finding_text(worst), _MESSAGE)
        return Case(
            name=title, family=family, outcome="failure", kind=f"{worst.code} {worst.kind}", message=message, text=text
        )
    if findings or unseen is None:
        return Case(name=title, family=family, printed=text)
    outcome = "error" if unseen.is_fault else "skipped"
    message = one_line(unseen.reason, _MESSAGE)
    return Case(name=title, family=family, outcome=outcome, kind="not-checked", message=message)


def _runs(report: Report) -> list[Case]:
    """Each child run. How one ended is no verdict of its own: its findings are, under their codes."""
    cases = []
    for outcome in report.runs:
        ended = run_view.run_ending(outcome)
        printed = "\n".join(part for part in (ended, outcome.stdout_tail, outcome.stderr_tail) if part)
        name = f"{outcome.id} {outcome.request.probe}"
        cases.append(Case(name=name, family="aotidoctor.runs", printed=printed, seconds=outcome.seconds))
    return cases


def _told(report: Report, finding: Evidence) -> str:
    where = view.source_text(finding.source)
    lines = [f"[{finding.severity.value}] {finding_text(finding)}", f"at {where}" if where else ""]
    lines += [
        f"cause: {diagnosis.cause} ({diagnosis.title}); {diagnosis.remedy.text}"
        for diagnosis in report.diagnoses
        if finding.id in diagnosis.evidence and diagnosis.rank == 1
    ]
    if isinstance(finding.source, RunSource):
        name = finding.source.run
        lines += [tail(run.error.traceback, 4000) for run in report.runs if run.id == name and run.error is not None]
    return "\n".join(line for line in lines if line)
