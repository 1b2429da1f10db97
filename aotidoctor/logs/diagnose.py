"""What a log's matches mean: findings with file and line, and diagnoses in the words of the playbooks.

A diagnosis from a log is suspected at best: nothing was run. It names the line that says so, what the log looked like
at that line, and the releases in which the cause is known and fixed, held against those that the log names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.diagnosis.playbooks import find_playbook
from aotidoctor.diagnosis.wording import fill, subject_of, title_of
from aotidoctor.logs import LEAST_CONFIDENCE, is_fixed
from aotidoctor.logs.known import Known, known_issue
from aotidoctor.logs.patterns import LEAST_SUSPICION
from aotidoctor.logs.splits import Split, kind_of, split_of
from aotidoctor.logs.wording import command_of, spoken, worded
from aotidoctor.model.diagnosis import Diagnosis, Playbook, Remedy, Status
from aotidoctor.model.evidence import Evidence, FactValue, FileSource, Severity
from aotidoctor.model.log import LogEvent, LogMatch, LogPattern, LogReading

KNOWN, UNKNOWN, UNREAD = "AD-LOG-001", "AD-LOG-002", "AD-LOG-003"
_LONGEST, _FRAMES = 300, 5
# Causes whose subject is a kernel where no input is named.
_OF_KERNELS = ("index-out-of-range", "cuda-device-assert", "integer-division", "kernel-crash", "cuda-illegal-access")
_KERNEL = re.compile(r"\b(?:cpp|triton)_(?:[a-z]+_)*?fused_\w+")
_RELEASE = re.compile(r" \((?:torch |Triton )?\d+\.\d+(?!\d)[^()]*\)$")
_NO_SPLIT = Split(cause="", kind="", said="")
_MOST_MATCHES, _MOST_UNKNOWN, _MOST_CAUSES = 12, 5, 5


def log_findings(reading: LogReading) -> list[Evidence]:
    """The lines that say so, the failures that no pattern knows, and what was not read. Ids are the caller's."""
    found = [_known(match, reading) for match in reading.matches[:_MOST_MATCHES]]
    found += [_unknown(event, reading) for event in reading.unknown[:_MOST_UNKNOWN]]
    return found + [_unread(problem, reading) for problem in reading.problems]


def log_diagnoses(findings: Sequence[Evidence]) -> tuple[Diagnosis, ...]:
    """The causes of what ``log_findings`` gave, in its order, each once."""
    known = [item for item in findings if item.code == KNOWN]
    told = [item for item in known if _sure(item) >= LEAST_CONFIDENCE]
    # Where nothing is told, what is suspected by its place or its general words.
    said = told or [item for item in known if item.facts.get("suspect") and _sure(item) >= LEAST_SUSPICION]
    causes: dict[str, list[Evidence]] = {}
    for item in said:
        causes.setdefault(item.kind, []).append(item)
    made: list[Diagnosis] = []
    for cause, evidence in causes.items():
        playbook = find_playbook(cause)
        if playbook is not None and len(made) < _MOST_CAUSES:
            made.append(_diagnosis(playbook, evidence, len(made) + 1))
    return tuple(made)


def _sure(item: Evidence) -> float:
    sure = item.facts.get("confidence")
    return sure if isinstance(sure, float) else 0.0


def _known(match: LogMatch, reading: LogReading) -> Evidence:
    event, pattern = match.event, match.pattern
    facts: dict[str, FactValue] = {
        **worded(pattern.cause, match.facts),
        "confidence": match.confidence,
        "form": event.form,
    }
    facts["stage"] = pattern.stage or event.stage
    issue = _issue(match)
    facts |= {key: value for key, value in _more(match, reading, issue).items() if value}
    facts = {**kind_of(pattern.cause, "\n".join((event.text, *event.frames[:_FRAMES]))), **facts}
    kernel = _KERNEL.search("\n".join((event.text, *event.frames)))
    if kernel is not None:
        facts.setdefault("kernel", kernel[0])
    is_lead = match.confidence < LEAST_CONFIDENCE
    subject = facts.get("subject") or (facts.get("kernel") if pattern.cause in _OF_KERNELS else None)
    return Evidence(
        code=KNOWN,
        kind=pattern.cause,
        severity=Severity.INFO if is_lead else Severity.WARN if event.level == "warning" else Severity.ERROR,
        subject=subject if isinstance(subject, str) else None,
        observed=_short(match.text),
        expected="",
        message=_message(match, reading.versions, issue),
        source=FileSource(file=reading.name, line=match.line),
        facts=facts,
    )


def _more(match: LogMatch, reading: LogReading, issue: Known | None) -> dict[str, FactValue]:
    event, pattern = match.event, match.pattern
    return {
        "source": _printed_by(pattern.source),
        "known_issue": issue.issue if issue is not None else "",
        "known_url": issue.url if issue is not None else "",
        "workaround_known": issue.workaround if issue is not None else "",
        "suspect": pattern.is_suspect,
        "component": pattern.component if pattern.known or pattern.fixed else "",
        "known": pattern.known,
        "fixed": pattern.fixed,
        "version": reading.versions.get(pattern.component, ""),
        "said_by": event.origin,
        "count": event.count if event.count > 1 else 0,
        "tainted": event.tainted,
        "echo_of": event.echo_of or 0,
    }


def _issue(match: LogMatch) -> Known | None:
    """The known issue of a match: some are told apart by where the message comes from, not by its words."""
    return known_issue("\n".join((match.event.text, *match.event.frames)), match.pattern.cause)


def _message(match: LogMatch, versions: Mapping[str, str], issue: Known | None) -> str:
    """Who prints it, and in which releases it is known."""
    pattern, version = match.pattern, versions.get(match.pattern.component)
    parts = [_origin(pattern)] if pattern.source else []
    if issue is not None:
        parts.insert(0, issue.sentence)
    if pattern.known:
        parts.append(f"known in {pattern.component} {pattern.known}")
    if pattern.fixed:
        parts.append(f"fixed in {pattern.component} {pattern.fixed}")
    if version and (pattern.known or pattern.fixed):
        over = ", which has the fix" if pattern.fixed and is_fixed(version, pattern.fixed) else ""
        parts.append(f"the log names {version}{over}")
    if match.facts.get("alike"):
        parts.append(f"by wording only, which is most similar to that of such failures: {match.facts['alike']}")
    if match.facts.get("unmarked"):
        parts.append("nothing around it names torch: it may come from a different program")
    if match.event.tainted:
        parts.append("logged after a sticky CUDA error; may be unreliable")
    return "; ".join(parts)


def _origin(pattern: LogPattern) -> str:
    """Who prints such a message, or why the place of the failure tells the cause (see ``LogPattern``)."""
    return f"printed by {_printed_by(pattern.source)}" if pattern.example else pattern.source


def _printed_by(source: str) -> str:
    """The file that prints a message, without the release that it was looked up in: that is not the user's."""
    return _RELEASE.sub("", source)


def _unknown(event: LogEvent, reading: LogReading) -> Evidence:
    facts: dict[str, FactValue] = {"form": event.form, "type": event.kind, "stage": event.stage}
    if event.frames:
        facts["frame"] = event.frames[0]
    if event.origin:
        facts["said_by"] = event.origin
    return Evidence(
        code=UNKNOWN,
        kind="unknown-failure",
        severity=Severity.WARN,
        subject=None,
        observed=_short(event.text.partition("\n")[0] or event.kind),
        expected="",
        message=f"{event.form}, logged {event.count} times" if event.count > 1 else event.form,
        source=FileSource(file=reading.name, line=event.first),
        facts=facts,
    )


def _unread(problem: str, reading: LogReading) -> Evidence:
    return Evidence(
        code=UNREAD,
        kind="not-read",
        severity=Severity.INFO,
        subject=None,
        observed=problem,
        expected="the whole log",
        source=FileSource(file=reading.name),
    )


def _diagnosis(playbook: Playbook, evidence: Sequence[Evidence], rank: int) -> Diagnosis:
    lead, said = evidence[0], spoken(evidence[0])
    stage, line = lead.facts.get("stage"), lead.source.line if isinstance(lead.source, FileSource) else None
    split = split_of(playbook.cause, lead.facts) or _NO_SPLIT
    return Diagnosis(
        cause=playbook.cause,
        rank=rank,
        status=Status.SUSPECTED,
        confidence=_sure(lead),
        title=title_of(split.title or playbook.title, said, evidence),
        looked_like=f"line {line}: {lead.observed}",
        subject=subject_of(lead),
        evidence=tuple(item.id for item in evidence if item.id),
        remedy=Remedy(
            text=_remedy(split.remedy or playbook.remedy, said),
            command=command_of(split.command or playbook.command, said),
        ),
        playbook=playbook.cause,
        severity=lead.severity,
        would_confirm=fill(playbook.would_confirm, said),
        stage=stage if isinstance(stage, str) and stage else playbook.stage,
    )


def _remedy(template: str, lead: Evidence) -> str:
    text = fill(template, lead)
    fixed, version, component = (lead.facts.get(key) for key in ("fixed", "version", "component"))
    issue, workaround = lead.facts.get("known_issue"), lead.facts.get("workaround_known")
    if issue:
        instead = f" Workaround: {workaround}." if workaround else ""
        text = f"{text.rstrip()} This message is known from {issue} ({lead.facts.get('known_url')}).{instead}"
    if not fixed:
        return text
    named = f"; the log names {version}" if version else ""
    return f"{text.rstrip()} Fixed in {component} {fixed}{named}."


def with_ids(findings: Sequence[Evidence]) -> list[Evidence]:
    """The findings, numbered from ``E1``."""
    return [replace(item, id=f"E{number}") for number, item in enumerate(findings, 1)]


def _short(text: str) -> str:
    line = text.strip()
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
