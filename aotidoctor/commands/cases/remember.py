"""From a report to what is kept of it, and from the store to the history that a report shows.

Redacted as a bundle is: strictly, and without values of tensors; only the essence is kept.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from aotidoctor.commands.cases.store import digest, open_store
from aotidoctor.fleet.essence import facts
from aotidoctor.fleet.results import read_results
from aotidoctor.model.history import CaseRecord, Sighting
from aotidoctor.reports.redact import Identity, Redactor
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.model.fleet import Fact, FleetResult
    from aotidoctor.model.report import Report

_LONGEST = 400
_CHUNK = 500


def is_case(report: Report) -> bool:
    """Whether there is a failure to remember: nothing healthy, nothing that could not be examined, no plan."""
    examined = report.cannot_examine is None and report.internal_error is None
    return examined and report.verdict != "healthy" and report.signature is not None and not report.plan


def remember(path: str, report: Report, environ: Mapping[str, str]) -> Report:
    """Keep ``report`` in the store at ``path``; it is returned with what was known of its failure before.

    Raises CannotExamineError where the store cannot be used.
    """
    if not is_case(report):
        return report
    record = essence(report, environ)
    with open_store(path, make=True) as store:
        known = store.history(record.signature, record.family)
        store.add([record])
    return replace(report, history=known)


def essence(report: Report, environ: Mapping[str, str]) -> CaseRecord:
    """What is kept of ``report``, redacted."""
    first = report.diagnoses[0] if report.diagnoses else None
    artifact = report.case.artifact
    signature = report.signature or ""
    key = digest(signature, report.started, report.command, artifact.sha256 or artifact.path, f"{report.seconds:.6f}")
    package = artifact.path.rpartition("/")[2] if artifact.path else (report.log.name if report.log is not None else "")
    record = CaseRecord(
        signature=signature,
        family=report.fingerprint.family if report.fingerprint is not None else "",
        cause=first.cause if first is not None else "unknown",
        stage=report.stage or "",
        title=_short(first.title if first is not None else ""),
        looked_like=_short(first.looked_like if first is not None else ""),
        sightings=(
            Sighting(
                key=key,
                at=report.started,
                command=report.command,
                subject=_short((first.subject or "") if first is not None else ""),
                package=_short(package),
                sha256=artifact.sha256 or "",
                # A log may come from another machine.
                host_class="" if report.log is not None else report.case.host.profile or host_class(facts(report.case)),
                status=first.status.value if first is not None else "",
                tool=report.version,
            ),
        ),
    )
    return strict(environ).value(record)


def of_result(result: FleetResult) -> CaseRecord | None:
    """What is kept of a line of a fleet's results, which is redacted as it is; None where it is no case."""
    if result.signature is None or result.is_healthy:
        return None
    return CaseRecord(
        signature=result.signature,
        family=result.family or "",
        cause=result.cause or "unknown",
        stage=result.stage or "",
        title=_short(result.title or ""),
        sightings=(
            Sighting(
                key=digest(result.signature, result.started, result.command, result.item, f"{result.seconds:.6f}"),
                at=result.started,
                command=result.command,
                subject=_short(result.subject or ""),
                package=_short(result.name.rpartition("/")[2]),
                sha256=result.sha256 or "",
                host_class=result.host or host_class(result.facts),
                status=result.cause_status or "",
                tool=result.tool,
            ),
        ),
    )


def remember_results(path: str, folder: str) -> int:
    """Keep the failures in a folder of results; those that are there already stay once. How many were new.

    Raises CannotExamineError where the store or the folder cannot be used.
    """
    seen = 0
    with open_store(path, make=True) as store:
        records = (record for result in read_results(folder) if (record := of_result(result)) is not None)
        while chunk := list(islice(records, _CHUNK)):
            seen += store.add(chunk)[0]
    return seen


def host_class(known: Mapping[str, Fact]) -> str:
    """The kind of machine, of the facts of a case: processor, instructions, torch and GPU. No name of it."""
    words = " ".join(str(known[name]) for name in ("host_machine", "host_isa") if name in known)
    torch = f"torch {known['host_torch']}" if "host_torch" in known else ""
    return _short(", ".join(part for part in (words, torch, str(known.get("host_gpu", ""))) if part))


def strict(environ: Mapping[str, str]) -> Redactor:
    """A redactor for what may leave the machine."""
    return Redactor(Identity.of(environ, platform.node()), strict=True)


def _short(text: str) -> str:
    return one_line(text, _LONGEST)
