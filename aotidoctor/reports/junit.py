"""Write a report as JUnit XML in the form that Jenkins and Surefire agree on: one case per check, probe or code.

A case fails when something at or above the severity that decides the exit status was found; what was not checked is
skipped with its reason; what broke inside aotidoctor is an error. Characters that XML cannot hold are replaced.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

from aotidoctor.model.evidence import Evidence, NotChecked, RunSource
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports.package_view import finding_text
from aotidoctor.reports.page import report_view, run_page
from aotidoctor.reports.page.report_view import headline
from aotidoctor.reports.text import FAIL_ON, one_line, plain, tail

# Cases as XML.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ROOM = 16_000


@record
class JUnitCase:
    """One testcase. ``outcome`` is ``failure``, ``error``, ``skipped`` or empty for a pass."""

    name: str
    family: str
    outcome: str = ""
    kind: str = ""
    message: str = ""
    text: str = ""
    printed: str = ""
    seconds: float = 0.0


def junit_document(
    name: str, cases: Sequence[JUnitCase], *, seconds: float, at: str, properties: Mapping[str, str], printed: str = ""
) -> str:
    """One suite of ``cases``, made ``at`` a time, as a document; ``printed`` is what the suite as a whole says."""
    counts = {kind: sum(1 for case in cases if case.outcome == kind) for kind in ("failure", "error", "skipped")}
    head = f'name={xml_attribute(name)} tests="{len(cases)}" failures="{counts["failure"]}" errors="{counts["error"]}"'
    took = f'time="{seconds:.3f}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {head} {took}>",
        f'  <testsuite {head} skipped="{counts["skipped"]}" {took} timestamp={xml_attribute(at)}>',
        "    <properties>",
        *(
            f"      <property name={xml_attribute(key)} value={xml_attribute(text)}/>"
            for key, text in properties.items()
        ),
        "    </properties>",
    ]
    for case in cases:
        # The element of one case.
        head = f"    <testcase name={xml_attribute(case.name)} classname={xml_attribute(case.family)}"
        head += f' time="{max(case.seconds, 0):.3f}"'
        body = []
        if case.outcome:
            words = f"type={xml_attribute(case.kind)} message={xml_attribute(case.message)}"
            body.append(f"      <{case.outcome} {words}>{_body_text(case.text)}</{case.outcome}>")
        if case.printed:
            body.append(f"      <system-out>{_body_text(case.printed)}</system-out>")
        lines += [f"{head}>", *body, "    </testcase>"] if body else [f"{head}/>"]
    lines += [f"    <system-out>{_body_text(printed)}</system-out>"] if printed else []
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", plain(text))


def _body_text(text: str) -> str:
    """The end of ``text`` as what stands between two tags."""
    return html.escape(_legal(tail(text, _ROOM)), quote=False)


def xml_attribute(text: str) -> str:
    """``text`` on one line, quoted."""
    # xml.sax has a function for this, and imports a client of HTTP with it.
    return f'"{html.escape(_legal(one_line(text, 4000)))}"'


# The report.
_MESSAGE = 400


def render_junit(report: Report, fail_on: str = "error", asked: Mapping[str, str] | None = None) -> str:
    """``report`` as XML. ``asked`` are the checks that were asked, code to name: those without a finding passed."""
    first = report.diagnoses[0] if report.diagnoses else None
    properties = {
        "tool": f"aotidoctor {report.version}",
        "command": report_view.command_text(report.argv),
        "verdict": report.verdict,
        "stage": report.stage or "",
        "cause": first.cause if first is not None else "",
        "signature": report.signature or "",
        "package": report.case.artifact.path,
    }
    cases, name = _cases(report, fail_on, asked or {}), f"aotidoctor {report.command}"
    head = headline(report)
    printed = "\n".join([f"{head.word}: {head.text}", *report_view.first_lines(report)])
    seconds = max(report.seconds, 0)
    return junit_document(name, cases, seconds=seconds, at=report.started, properties=properties, printed=printed)


def _cases(report: Report, fail_on: str, values: Mapping[str, str]) -> list[JUnitCase]:
    broken = []
    if text := report.internal_error or report.cannot_examine or "":
        message = one_line((text.strip().splitlines() or [""])[-1], _MESSAGE)
        family, kind = "aotidoctor", "examination"
        broken = [JUnitCase(name="examination", family=family, outcome="error", kind=kind, message=message, text=text)]
    unseen = {item.code: item for item in report.not_checked}
    found: dict[str, list[Evidence]] = {}
    for finding in report.findings:
        found.setdefault(finding.code, []).append(finding)
    codes = [*values, *(code for code in found if code not in values)]
    codes += [code for code in unseen if code not in codes]
    if broken and not found and not unseen:
        return broken  # Nothing was asked.
    about = {item.code: item.name for item in report.not_checked} | dict(values)
    judged = [
        _case(report, (code, about.get(code, "")), found.get(code, []), unseen.get(code), fail_on) for code in codes
    ]
    # Each child run. How one ended is no verdict of its own: its findings are, under their codes.
    cases = []
    for outcome in report.runs:
        ended = run_page.run_ending(outcome)
        printed = "\n".join(part for part in (ended, outcome.stdout_tail, outcome.stderr_tail) if part)
        name = f"{outcome.id} {outcome.request.probe}"
        cases.append(JUnitCase(name=name, family="aotidoctor.runs", printed=printed, seconds=outcome.seconds))
    return [*broken, *judged, *cases]


def _case(
    report: Report, check: tuple[str, str], findings: Sequence[Evidence], unseen: NotChecked | None, fail_on: str
) -> JUnitCase:
    """The case of one ``check``: its code and its name."""
    title, family = " ".join(check).strip(), f"aotidoctor.{check[0].rpartition('-')[0]}"
    threshold = FAIL_ON.index(fail_on)
    bad = [item for item in findings if item.severity.rank >= threshold]
    text = "\n\n".join(_evidence_text(report, item) for item in findings)
    if bad:
        worst = max(bad, key=lambda item: item.severity.rank)
        message = one_line(finding_text(worst), _MESSAGE)
        return JUnitCase(
            name=title, family=family, outcome="failure", kind=f"{worst.code} {worst.kind}", message=message, text=text
        )
    if findings or unseen is None:
        return JUnitCase(name=title, family=family, printed=text)
    outcome = "error" if unseen.is_fault else "skipped"
    message = one_line(unseen.reason, _MESSAGE)
    return JUnitCase(name=title, family=family, outcome=outcome, kind="not-checked", message=message)


def _evidence_text(report: Report, finding: Evidence) -> str:
    where = report_view.source_text(finding.source)
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
