"""What compute-sanitizer wrote: its reports, of memcheck, initcheck and racecheck, and the sum at the end."""

from __future__ import annotations

import re

from aotidoctor.model.record import record

_HEAD = re.compile(
    r"^=+ (?P<head>Invalid \S+ (?:read|write|atomic)\b.*|Uninitialized .*(?:read|access)\b.*|"
    r"(?:Error: |Warning: |ERROR: )?Race reported between .*)$",
    re.MULTILINE,
)
_NEXT = re.compile(r"^=+(?: [A-Z]|\s*$)", re.MULTILINE)
_ACCESS = re.compile(
    r"(?P<space>__\w{1,40}__)?\s?(?:memory )?(?P<access>read|write|atomic)\b(?:.{0,200}?of size (?P<size>\d+))?",
    re.IGNORECASE,
)
# Older releases put the offset first, newer ones the name.
_NEW = re.compile(
    r"\bat (?:void )?(?P<kernel>[\w:~$]+)(?![\w:~$])[^\n]{0,400}?\+0x[0-9a-f]+(?: in (?P<file>[^\s:]+):(?P<line>\d+))?"
)
_OLD = re.compile(r"\bat 0x[0-9a-f]+ in (?:(?P<file>[^\s:()]+):(?P<line>\d+):)?(?:void )?(?P<kernel>[\w:~$]+)")
_THREAD = re.compile(r"by thread \((?P<thread>[\d,]+)\) in block \((?P<block>[\d,]+)\)")
_ADDRESS = re.compile(r"(?:Address|Access to) (?P<address>0x[0-9a-f]+)(?: is (?P<what>out of bounds|misaligned))?")
_BEYOND = re.compile(
    r"is (?P<beyond>[\d,]+) bytes (?P<side>after|before) the nearest allocation at (?P<allocation>0x[0-9a-f]+)"
    r"(?: of size (?P<allocated>[\d,]+) bytes)?"
)
_HAZARDS = re.compile(r"\[(?P<hazards>\d+) hazards?\]")
_SUMMARY = re.compile(r"(?:ERROR SUMMARY: (?P<errors>\d+) error|RACECHECK SUMMARY: (?P<hazards>\d+) hazard)")


@record
class SanitizerReport:
    """One report. ``kind`` is ``invalid-access``, ``uninitialized`` or ``race``; ``facts`` what the report tells."""

    kind: str
    head: str
    kernel: str | None
    facts: dict[str, str | int]


@record
class Sanitized:
    """All reports in order. ``total`` is the tool's own sum, None when it did not get to its end."""

    started: bool
    reports: tuple[SanitizerReport, ...] = ()
    total: int | None = None


def read_sanitizer(text: str) -> Sanitized:
    """Read the tool's log. Errors of API calls that follow a fault are no reports of their own."""
    heads = list(_HEAD.finditer(text))
    summaries = [int(match["errors"] or match["hazards"]) for match in _SUMMARY.finditer(text)]
    return Sanitized(
        started="COMPUTE-SANITIZER" in text,
        reports=tuple(_report(match["head"].strip(), _body(text, match.end())) for match in heads),
        total=max(summaries) if summaries else None,
    )


def _body(text: str, begin: int) -> str:
    following = _NEXT.search(text, begin)
    return text[begin : following.start() if following else len(text)]


def _report(head: str, body: str) -> SanitizerReport:
    kind = "race" if "Race reported" in head else "uninitialized" if head.startswith("Uninit") else "invalid-access"
    facts: dict[str, str | int] = {}
    for pattern, text in ((_ACCESS, head), (_THREAD, body), (_ADDRESS, body), (_BEYOND, body), (_HAZARDS, body)):
        match = pattern.search(text)
        if match:
            facts |= {key: _value(value) for key, value in match.groupdict().items() if value is not None}
    whole = head + body
    place = _NEW.search(whole) or _OLD.search(whole)
    if place and place["file"]:
        facts |= {"file": place["file"], "line": int(place["line"])}
    return SanitizerReport(kind=kind, head=head, kernel=place["kernel"] if place else None, facts=facts)


def _value(text: str) -> str | int:
    """Numbers as such; positions of threads stay text."""
    plain = text.replace(",", "")
    grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+", text)
    return int(plain) if text.isdigit() or grouped else text.lower() if text in ("Read", "Write") else text
