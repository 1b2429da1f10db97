"""Write a report as SARIF 2.1.0, within the limits of GitHub code scanning.

Rules are the codes of checks and probes and the causes of playbooks; results are the findings, and the diagnoses with
their evidence as related locations. A finding inside the package points at the member, nested in its package, and so
does one about a kernel or an input of a run; one about a file at line and column; all else at the package as a whole.
What was not checked is a notification of the invocation.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aotidoctor.model.evidence import Evidence, FileSource, RunSource, Severity, shorten
from aotidoctor.model.localization import Localization
from aotidoctor.model.report import Diagnosis, Report
from aotidoctor.reports.json.json_report import dump_json
from aotidoctor.reports.package_view import file_uri, finding_text, is_member, place_of
from aotidoctor.reports.page import report_view
from aotidoctor.reports.text import exit_status, one_line, plain

SarifNode = dict[str, object]

# The log.
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# What GitHub takes in: results of a run, characters of a rule's texts, locations of a result.
RESULTS, TITLE, LOCATIONS = 5000, 1000, 100
# Frames of a stack.
FRAMES = 60
_LEVELS = {Severity.INFO: "note", Severity.WARN: "warning", Severity.ERROR: "error"}
# The number at the end of a kernel's name; hashes in names of members, addresses.
_NUMBER, _HASH = re.compile(r"_\d+\b"), re.compile(r"0x[0-9a-f]+|\b[a-z0-9]{40,}\b")
HELP = 8000

# Name and text of the manual page of a code or cause, None where there is none.
RuleManual = Callable[[str], tuple[str, str] | None]


@dataclass(slots=True)
class _Log:
    """The run under construction: rules and files are numbered as they are met; members are nested in their package."""

    report: Report
    manual: RuleManual
    files: dict[tuple[str, bool], int] = field(default_factory=dict)
    rules: dict[str, SarifNode] = field(default_factory=dict)
    prints: Counter[str] = field(default_factory=Counter)

    def rule(self, name: str, title: str) -> int:
        """Index of the rule ``name``."""
        if name not in self.rules:
            # A rule says the same of every case, so that alerts of two runs are of one rule.
            page = self.manual(name)
            called, text = page if page is not None else ("", title)
            short = one_line(called if called and called != name else name)
            # The first paragraph under the first heading.
            paragraphs = (
                part.strip() for part in re.split(r"\n\s*\n|^#.*\n|^What it does:?\n", text, flags=re.MULTILINE)
            )
            whole = one_line(next((part for part in paragraphs if part), ""), TITLE - 40) or short
            self.rules[name] = sarif_rule(name, short, whole, shorten(plain(text), HELP))
        return list(self.rules).index(name)

    def artifacts(self) -> list[SarifNode]:
        """The files that were met."""
        return [self._artifact(file, member=member) for file, member in self.files]

    def _index(self, file: str, *, member: bool) -> int:
        """Number of a file; a member comes after the package that it lies in."""
        if member:
            self._index(self.report.case.artifact.path, member=False)
        return self.files.setdefault((file, member), len(self.files))

    def location(self, finding: Evidence | None, subject: str | None) -> SarifNode:
        """A physical place always, because alerts need one; the subject and the run by name."""
        names: list[SarifNode] = [{"name": one_line(subject, 300)}] if subject else []
        source = finding.source if finding is not None else None
        if isinstance(source, RunSource):
            place = report_view.source_text(source)
            names.append({"name": place, "fullyQualifiedName": f"{source.run}/{source.stream}"})
        physical = self._physical(place_of(self.report, finding) if finding is not None else None)
        return {"physicalLocation": physical} | ({"logicalLocations": names} if names else {})

    def stack(self, place: Localization) -> SarifNode:
        """The native stack, innermost first; frames inside the package with their line."""
        frames: list[SarifNode] = []
        for frame in place.frames[:FRAMES]:
            name = one_line(frame.function or "?", 400)
            location: SarifNode = {"message": {"text": name}, "logicalLocations": [{"name": name}]}
            if frame.member is not None:
                source = FileSource(file=frame.member, line=frame.line)
                location["physicalLocation"] = self._physical(source)
            module = {"module": one_line(frame.library, 400)} if frame.library else {}
            frames.append({"location": location, **module})
        return {"message": {"text": f"Native stack{f' ({place.how})' if place.how else ''}"}, "frames": frames}

    def _physical(self, source: FileSource | None) -> SarifNode:
        package = self.report.case.artifact.path or "aotidoctor"
        file = source.file if source is not None else package
        member = is_member(self.report.case.artifact, file)
        place: SarifNode = {"uri": file_uri(file), "index": self._index(file, member=member)}
        if not member and not file.startswith("/"):
            place["uriBaseId"] = "SRCROOT"
        line = source.line if source is not None else None
        # Alerts must have a line: the first stands for the file as a whole.
        region: SarifNode = {"startLine": max(line or 1, 1)}
        if source is not None and source.column:
            region["startColumn"] = source.column
        return {"artifactLocation": place, "region": region}

    def _artifact(self, file: str, *, member: bool) -> SarifNode:
        location: SarifNode = {"uri": file_uri(file)}
        if member:
            parent = self.files[self.report.case.artifact.path, False]
            return {"location": location, "parentIndex": parent}
        if not file.startswith("/"):
            location["uriBaseId"] = "SRCROOT"
        found = self.report.case.artifact
        if file != found.path or found.sha256 is None:
            return {"location": location}
        return {"location": location, "length": found.size, "hashes": {"sha-256": found.sha256}}


def render_sarif(report: Report, fail_on: str = "error", manual: RuleManual = lambda _: None) -> str:
    """``report`` as a SARIF log; ``fail_on`` decides the exit status that it states."""
    log = _Log(report=report, manual=manual)
    results = [_diagnosis_result(log, diagnosis) for diagnosis in report.diagnoses]
    results += [_finding_result(log, finding) for finding in report.findings[: RESULTS - len(results)]]
    left = len(report.diagnoses) + len(report.findings) - len(results)
    invocation = _invocation(log, fail_on, left)
    run: SarifNode = {
        "tool": sarif_tool(report.version, list(log.rules.values())),
        "invocations": [invocation],
        "automationDetails": {"id": f"aotidoctor/{report.command}/"},
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The folder that the command was run in."}}},
        "artifacts": log.artifacts(),
        "results": results,
        "columnKind": "unicodeCodePoints",
        "properties": {"verdict": report.verdict, "stage": report.stage, "signature": report.signature},
    }
    return sarif_document(run)


def sarif_document(run: SarifNode) -> str:
    """The log of one run."""
    return dump_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def sarif_tool(version: str, rules: list[SarifNode]) -> SarifNode:
    """Describe the tool and its rules."""
    return {"driver": {"name": "aotidoctor", "version": version, "semanticVersion": version, "rules": rules}}


def sarif_rule(name: str, short: str, whole: str, text: str) -> SarifNode:
    """A rule: its title, what it is in a sentence, and the page of the manual."""
    return {
        "id": name,
        "name": short,
        "shortDescription": {"text": short},
        "fullDescription": {"text": whole},
        "help": {"text": text, "markdown": text},
        "properties": {"tags": ["aotinductor", "cause" if name.islower() else "evidence"]},
    }


def _diagnosis_result(log: _Log, diagnosis: Diagnosis) -> SarifNode:
    """A diagnosis. Those that are not the first are other possible causes: notes."""
    report = log.report
    evidence = report_view.evidence_of(report, diagnosis)
    first = evidence[0] if evidence else None
    lines = [
        f"{diagnosis.cause}: {diagnosis.title}",
        report_view.what_it_is(report, diagnosis),
        f"How sure: {report_view.how_sure(diagnosis)}",
        f"What to do: {diagnosis.remedy.text}" if diagnosis.remedy.text else "",
        diagnosis.remedy.command,
    ]
    result: SarifNode = {
        "ruleId": diagnosis.cause,
        "ruleIndex": log.rule(diagnosis.cause, diagnosis.title),
        "level": _LEVELS[diagnosis.severity] if diagnosis.rank == 1 else "note",
        "message": {"text": shorten("\n".join(plain(line) for line in lines if line), HELP)},
        "locations": [log.location(first, diagnosis.subject)],
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
        result["stacks"] = [log.stack(report.localization)]
    related = [
        {
            "id": number,
            "message": {"text": one_line(f"{item.id} {item.code}: {item.observed or item.message}", 400)},
            **log.location(item, item.subject),
        }
        for number, item in enumerate(evidence[:LOCATIONS], 1)
    ]
    return result | ({"relatedLocations": related} if related else {})


def _finding_result(log: _Log, finding: Evidence) -> SarifNode:
    title = f"{finding.code} {finding.kind}".strip()
    return {
        "ruleId": finding.code,
        "ruleIndex": log.rule(finding.code, title),
        "level": _LEVELS[finding.severity],
        "message": {"text": shorten(plain(finding_text(finding)), HELP) or title},
        "locations": [log.location(finding, finding.subject)],
        "partialFingerprints": _fingerprints(log, title, finding.subject or ""),
        "suppressions": [],
        "properties": {
            "id": finding.id,
            "kind": finding.kind,
            "observed": plain(finding.observed),
            "expected": plain(finding.expected),
        },
    }


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


def _invocation(log: _Log, fail_on: str, left: int) -> SarifNode:
    report = log.report
    notes = [sarif_notice("note", f"{item.name}: {item.reason}", item.code) for item in report.not_checked]
    if report.internal_error is not None:
        notes.append(sarif_notice("error", report.internal_error, "internal-error"))
    if report.cannot_examine is not None:
        notes.append(sarif_notice("error", report.cannot_examine, "cannot-examine"))
    if partial := report_view.partial_note(report):
        notes.append(sarif_notice("warning", partial, "partial"))
    if left:
        notes.append(sarif_notice("warning", f"{left} more findings are not listed here", "cut"))
    return {
        "executionSuccessful": report.internal_error is None and report.cannot_examine is None,
        "exitCode": exit_status(report, fail_on),
        "commandLine": report_view.command_text(report.argv),
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


def sarif_notice(level: str, text: str, name: str) -> SarifNode:
    """A notification of the tool."""
    return {"level": level, "message": {"text": shorten(plain(text), HELP) or name}, "descriptor": {"id": name}}
