"""Read the memory errors that an emulation of a CUDA package or compute-sanitizer found.

Findings of an emulation that follow from others are left out. Reports of compute-sanitizer are those of memcheck,
initcheck and racecheck, with the sum at the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from aotidoctor.localize.blame.failing_elements import INDEX, Failure
from aotidoctor.localize.blame.indirect_failures import OUT_OF_BOUNDS
from aotidoctor.model.answers import parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.localization import Emulated, Emulation, EmulationFault
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome
from aotidoctor.model.torch_names import contiguous_stride


def failure_of(found: EmulationFault) -> Failure | None:
    """The check in the kernel's text that failed; None for anything but an index."""
    hit = OUT_OF_BOUNDS.search(found.message)
    if found.kind != "device-assert" or hit is None:
        return None
    return Failure(
        kind=INDEX, kernel=found.kernel, line=found.wrapper_line, variable=hit["variable"], bound=hit["bound"]
    )


def read_emulation(outcome: Outcome) -> Emulation | None:
    """The result of the job; None where it did not get that far."""
    return parse_answer(Emulated, outcome.result).emulation


def buffer_text(case: Case, name: str | None) -> tuple[str, str | None]:
    """The user's name of the wrapper's buffer, and the caller's path where it is an input."""
    if name is None:
        return "a null pointer", None
    contract = case.contract
    if contract is None:
        return name, None
    for leaf in contract.leaves:
        if name in (leaf.generated_name, leaf.path):
            return leaf.path, leaf.path
    names: Mapping[str, str] = {one.name: one.fqn for one in contract.constants}
    return names.get(name, name), None


def element_text(found: EmulationFault) -> str:
    """``[100, 0] of 100 rows`` for a row of a contiguous tensor, else ``[2400] of 2400 elements``."""
    if found.offset is None or found.extent is None:
        return ""
    whole = len(found.sizes) > 1 and 0 not in found.sizes and contiguous_stride(found.sizes) == found.strides
    if whole and found.offset >= 0 and math.prod(found.sizes) == found.extent:
        index, rest = [], found.offset
        for step in found.strides:
            index.append(rest // step)
            rest %= step
        return f"[{', '.join(map(str, index))}] of {found.sizes[0]} rows"
    return f"[{found.offset}] of {found.extent} elements"


# Findings that follow from others.
_NO_ADDRESS = ("nan", "inf")


def root_findings(found: Emulation) -> list[EmulationFault]:
    """The findings without those that follow from a failed assertion of the same launch or from earlier findings."""
    asserted = {one.launch for one in found.findings if one.kind == "device-assert"}
    astray = {one.launch for one in found.findings if one.kind in ("out-of-bounds", "use-after-free", "misaligned")}
    pairs = [(one, other) for one in found.findings for other in explained_by(one, found)]
    explained = [other for _, other in pairs]
    wrapped = {other.launch for one, other in pairs if (one.kind, other.kind) == ("int32-overflow", "race")}
    first = min((one for one in (*asserted, *astray, *wrapped) if one is not None), default=None)
    return [
        one
        for one in found.findings
        if not (one.launch in asserted and one.kind in ("out-of-bounds", "misaligned", "int32-overflow"))
        # Values that a stray lane read or left out are not those of the model.
        and not (one.kind in _NO_ADDRESS and first is not None)
        and not (one.kind == "uninitialized" and first is not None and (one.launch is None or one.launch > first))
        and not (one.kind == "race" and one.launch in wrapped)
        and one not in explained
    ]


def explained_by(one: EmulationFault, found: Emulation) -> list[EmulationFault]:
    """The findings that follow from ``one`` in the same launch.

    Of a 32-bit index that overflows: its lane that goes astray, lanes that collide in the buffer. Of a store that goes
    beyond its buffer: collisions inside of it, as what has no bound runs over its neighbours first.
    """
    return [other for other in found.findings if one.launch == other.launch and _follows(other, one)]


def _follows(other: EmulationFault, one: EmulationFault) -> bool:
    here = one.buffer == other.buffer is not None
    if one.kind == "out-of-bounds":
        return one.access == "store" and other.kind == "race" and here
    if one.kind != "int32-overflow":
        return False
    if other.kind == "race":
        return one.line == other.line or here
    # Were the index wrong without it, another lane would be the first.
    same = (one.line, one.program, one.lane) == (other.line, other.program, other.lane)
    return other.kind == "out-of-bounds" and same


# compute-sanitizer.

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
    """One report. ``kind`` is ``invalid-access``, ``uninitialized`` or ``race``; ``facts`` the rest of its contents."""

    kind: str
    head: str
    kernel: str | None
    facts: dict[str, str | int]


@record
class SanitizerResult:
    """All reports in order. ``total`` is the tool's own sum, None when it did not get to its end."""

    started: bool
    reports: tuple[SanitizerReport, ...] = ()
    total: int | None = None


def read_sanitizer(text: str) -> SanitizerResult:
    """Read the tool's log. Errors of API calls that follow a fault are no reports of their own."""
    reports: list[SanitizerReport] = []
    for found in _HEAD.finditer(text):
        head = found["head"].strip()
        following = _NEXT.search(text, found.end())
        body = text[found.end() : following.start() if following else len(text)]
        kind = "uninitialized" if head.startswith("Uninit") else "invalid-access"
        facts: dict[str, str | int] = {}
        for pattern, part in ((_ACCESS, head), (_THREAD, body), (_ADDRESS, body), (_BEYOND, body), (_HAZARDS, body)):
            match = pattern.search(part)
            if match:
                facts |= {key: _value(value) for key, value in match.groupdict().items() if value is not None}
        place = _NEW.search(head + body) or _OLD.search(head + body)
        if place and place["file"]:
            facts |= {"file": place["file"], "line": int(place["line"])}
        reports.append(
            SanitizerReport(
                kind="race" if "Race reported" in head else kind,
                head=head,
                kernel=place["kernel"] if place else None,
                facts=facts,
            )
        )
    totals = [int(match["errors"] or match["hazards"]) for match in _SUMMARY.finditer(text)]
    return SanitizerResult(started="COMPUTE-SANITIZER" in text, reports=tuple(reports), total=max(totals, default=None))


def _value(text: str) -> str | int:
    """Numbers as such; positions of threads stay text."""
    plain = text.replace(",", "")
    grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+", text)
    return int(plain) if text.isdigit() or grouped else text.lower() if text in ("Read", "Write") else text
