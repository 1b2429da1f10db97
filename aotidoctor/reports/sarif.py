"""The report as SARIF 2.1.0, within what GitHub code scanning takes in.

Rules are the codes of checks and probes and the causes of playbooks; results are the findings, and the diagnoses with
their evidence as related locations. A finding inside the package points at the member, nested in its package, and so
does one about a kernel or an input that a run told of; one about a file at line and column; all else at the package as
a whole. What was
not looked at is a notification of the invocation.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.report import Report
from aotidoctor.reports import view
from aotidoctor.reports.json.render import dumps
from aotidoctor.reports.places import finding_text
from aotidoctor.reports.sarif_places import Node, Places
from aotidoctor.reports.status import exit_status
from aotidoctor.reports.text import one_line, plain

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# What GitHub takes in: results of a run, characters of a rule's texts, locations of a result.
RESULTS, TITLE, LOCATIONS = 5000, 1000, 100
_LEVELS = {Severity.INFO: "note", Severity.WARN: "warning", Severity.ERROR: "error"}
# The number at the end of a kernel's name; hashes in names of members, addresses.
_NUMBER, _HASH = re.compile(r"_\d+\b"), re.compile(r"0x[0-9a-f]+|\b[a-z0-9]{40,}\b")
_HELP = 8000

# Name and text of the manual page of a code or cause, None where there is none.
Manual = Callable[[str], tuple[str, str] | None]


@dataclass(slots=True)
class _Log:
    """The run under construction: rules and files are numbered as they are met."""

    report: Report
    manual: Manual
    places: Places
    rules: dict[str, Node] = field(default_factory=dict)
    prints: Counter[str] = field(default_factory=Counter)

    def rule(self, name: str, title: str) -> int:
        """Index of the rule ``name``."""
        if name not in self.rules:
            self.rules[name] = _rule(name, title, self.manual(name))
        return list(self.rules).index(name)


def render(report: Report, fail_on: str = "error", manual: Manual = lambda _: None) -> str:
    """``report`` as a SARIF log; ``fail_on`` decides the exit status that it states."""
    log = _Log(report=report, manual=manual, places=Places(report=report))
    results = [_diagnosed(log, diagnosis) for diagnosis in report.diagnoses]
    results += [_found(log, finding) for finding in report.findings[: RESULTS - len(results)]]
    left = len(report.diagnoses) + len(report.findings) - len(results)
    invocation = _invocation(log, fail_on, left)
    run: Node = {
        "tool": tool(report.version, list(log.rules.values())),
        "invocations": [invocation],
        "automationDetails": {"id": f"aotidoctor/{report.command}/"},
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The folder that the command was run in."}}},
        "artifacts": log.places.artifacts(),
        "results": results,
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": report.verdict, "stage": report.stage, "signature": report.signature},
    }
    return document(run)


def document(run: Node) -> str:
    """The log of one run."""
    return dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def tool(version: str, rules: list[Node]) -> Node:
    """Who made it, and by which rules."""
    return {"driver": {"name": "aotidoctor", "version": version, "semanticVersion": version, "rules": rules}}


def _rule(name: str, title: str, page: tuple[str, str] | None) -> Node:
    """A rule says the same of every case, so that alerts of two runs are of one rule."""
    called, text = page if page is not None else ("", title)
    short = one_line(called if called and called != name else name, 200)
    return {
        "id": name,
        "name": short,
        "shortDescription": {"text": short},
        "fullDescription": {"text": one_line(_beginning(text), TITLE - 40) or short},
        "help": {"text": _cut(plain(text)), "markdown": _cut(plain(text))},
        "properties": {"tags": ["aotinductor", "cause" if name.islower() else "evidence"]},
    }


def _beginning(text: str) -> str:
    """The first paragraph under the first heading."""
    paragraphs = (part.strip() for part in re.split(r"\n\s*\n|^#.*\n|^What it does:?\n", text, flags=re.MULTILINE))
    return next((part for part in paragraphs if part), "")


def _cut(text: str) -> str:
    return text if len(text) <= _HELP else f"{text[:_HELP]}\n… ({len(text) - _HELP} more characters)"


def _diagnosed(log: _Log, diagnosis: Diagnosis) -> Node:
    """A diagnosis. Those that are not the first are other possible causes: notes."""
    report = log.report
    evidence = view.evidence_of(report, diagnosis)
    first = evidence[0] if evidence else None
    lines = [
        f"{diagnosis.cause}: {diagnosis.title}",
        view.what_it_is(report, diagnosis),
        f"How sure: {view.how_sure(diagnosis)}",
        f"What to do: {diagnosis.remedy.text}" if diagnosis.remedy.text else "",
        diagnosis.remedy.command,
    ]
    result: Node = {
        "ruleId": diagnosis.cause,
        "ruleIndex": log.rule(diagnosis.cause, diagnosis.title),
        "level": _LEVELS[diagnosis.severity] if diagnosis.rank == 1 else "note",
        "message": {"text": _cut("\n".join(plain(line) for line in lines if line))},
        "locations": [log.places.location(first, diagnosis.subject)],
        "partialFingerprints": _fingerprints(log, diagnosis.cause, diagnosis.subject or ""),
        "suppressions": [],
        "properties": {
            "status": diagnosis.status.value,
            "confidence": diagnosis.confidence,
            "rank": diagnosis.rank,
            "evidence": diagnosis.evidence,
        },
    }
    if diagnosis.rank == 1 and report.localization is not None and report.localization.frames:
        result["stacks"] = [log.places.stack(report.localization)]
    related = [_related(log, number, item) for number, item in enumerate(evidence[:LOCATIONS], 1)]
    return result | ({"relatedLocations": related} if related else {})


def _found(log: _Log, finding: Evidence) -> Node:
    title = f"{finding.code} {finding.kind}".strip()
    return {
        "ruleId": finding.code,
        "ruleIndex": log.rule(finding.code, title),
        "level": _LEVELS[finding.severity],
        "message": {"text": _cut(plain(finding_text(finding))) or title},
        "locations": [log.places.location(finding, finding.subject)],
        "partialFingerprints": _fingerprints(log, title, finding.subject or ""),
        "suppressions": [],
        "properties": {
            "id": finding.id,
            "kind": finding.kind,
            "observed": plain(finding.observed),
            "expected": plain(finding.expected),
        },
    }


def _related(log: _Log, number: int, finding: Evidence) -> Node:
    text = f"{finding.id} {finding.code}: {finding.observed or finding.message}"
    return {"id": number, "message": {"text": one_line(text, 400)}} | log.places.location(finding, finding.subject)


def _fingerprints(log: _Log, what: str, subject: str) -> Mapping[str, str]:
    """The same for the same fault: no line, and no number that a compilation, run or machine gives."""
    signature = log.report.signature
    about = _HASH.sub("H", _NUMBER.sub("_N", subject.rpartition("/")[2]))
    digest = hashlib.sha256(
        "\0".join((signature or "", what, plain(about))).encode(errors="surrogatepass")
    ).hexdigest()[:16]
    log.prints[digest] += 1
    own = {"aotidoctorSignature/v1": signature} if signature else {}
    return {"primaryLocationLineHash": f"{digest}:{log.prints[digest]}", **own}


def _invocation(log: _Log, fail_on: str, left: int) -> Node:
    report = log.report
    notes = [_notice("note", f"{item.name}: {item.reason}", item.code) for item in report.not_checked]
    if report.internal_error is not None:
        notes.append(_notice("error", report.internal_error, "internal-error"))
    if report.cannot_examine is not None:
        notes.append(_notice("error", report.cannot_examine, "cannot-examine"))
    if partial := view.partial_note(report):
        notes.append(_notice("warning", partial, "partial"))
    if left:
        notes.append(_notice("warning", f"{left} more findings are not listed here", "cut"))
    return {
        "executionSuccessful": report.internal_error is None and report.cannot_examine is None,
        "exitCode": exit_status(report, fail_on),
        "commandLine": view.command_text(report.argv),
        **_times(report),
        "toolExecutionNotifications": notes,
    }


def _times(report: Report) -> Mapping[str, object]:
    try:
        started = datetime.fromisoformat(report.started.replace("Z", "+00:00"))
    except ValueError:
        return {}
    ended = started + timedelta(seconds=max(report.seconds, 0))
    return {"startTimeUtc": report.started, "endTimeUtc": ended.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"}


def _notice(level: str, text: str, name: str) -> Node:
    return {"level": level, "message": {"text": _cut(plain(text)) or name}, "descriptor": {"id": name}}
