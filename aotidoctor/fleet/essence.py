"""From the report on an item to its line in the results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from aotidoctor.checks.package.facts import device_of, main_object
from aotidoctor.fleet.item import Item
from aotidoctor.model.fleet import Fact, FleetResult
from aotidoctor.readers.releases.built_by import built_by
from aotidoctor.readers.releases.shims import release_text

if TYPE_CHECKING:
    from aotidoctor.model.case import Case
    from aotidoctor.model.host import Host
    from aotidoctor.model.report import Report

# The newest set of instructions of a processor, best first, as torch names its capability.
_ISA = (("amx_tile", "amx"), ("avx512f", "avx512"), ("avx2", "avx2"), ("sve", "sve"), ("asimd", "neon"))
_TEXT = 300
_CAUSES = 8


def essence(item: Item, report: Report, status: int) -> FleetResult:
    """The line of ``item``. ``report`` is the one that may be shown: redacted, unless the user wants it otherwise.

    ``labels``, ``expected`` and what is known of the file are added by who keeps the results.
    """
    best = report.diagnoses[0] if report.diagnoses else None
    fingerprint = report.fingerprint
    return FleetResult(
        item=item.id,
        name=item.path,
        command=item.command,
        verdict=report.verdict,
        status=status,
        stage=report.stage,
        cause=best.cause if best else None,
        cause_status=best.status.value if best else None,
        confidence=best.confidence if best else None,
        title=_cut(best.title) if best else None,
        subject=_cut(best.subject) if best else None,
        causes=tuple(dict.fromkeys(each.cause for each in report.diagnoses))[:_CAUSES],
        signature=report.signature,
        family=fingerprint.family if fingerprint else None,
        problem=_cut(_problem(report)),
        sha256=report.case.artifact.sha256,
        size=report.case.artifact.size if report.case.artifact.sha256 else None,
        inputs=item.inputs,
        reference=item.reference,
        log=item.path if item.command == "classify" else None,
        host=item.host,
        facts=facts(report.case),
        started=report.started,
        seconds=round(report.seconds, 4),
        tool=report.version,
    )


def _problem(report: Report) -> str | None:
    """Why it was not examined to its end."""
    if report.internal_error is not None:
        return "aotidoctor failed here: " + report.internal_error.strip().rpartition("\n")[2]
    if report.cannot_examine is not None:
        return report.cannot_examine
    limit = next((item.reason for item in report.not_checked if item.code == "AD-LIMIT"), "out of time")
    return limit if report.out_of_time else "interrupted" if report.interrupted else None


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _TEXT else text[: _TEXT - 1] + "…"


def facts(case: Case) -> Mapping[str, Fact]:
    """Features that may set a group of items apart; what is not known is left out."""
    found: dict[str, Fact | None] = {"kind": case.artifact.kind.value if case.artifact.path else None}
    with suppress(OSError, ValueError):
        at = os.stat(case.artifact.path).st_mtime  # noqa: PTH116 - of a path that may be none
        found["modified"] = datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d")
    if case.model is not None:
        found |= _of_package(case)
    if case.host.torch is not None or case.host.cpu_flags:
        found |= _of_host(case.host)
    return {name: value for name, value in found.items() if value is not None}


def _of_package(case: Case) -> dict[str, Fact | None]:
    compiled = main_object(case)
    built = built_by(case.model, compiled) if case.model is not None else None
    needs = case.contract.needs if case.contract is not None else None
    return {
        "device": device_of(case),
        "machine": compiled.machine if compiled is not None else None,
        "built_torch": release_text(built.least) if built is not None and built.least else None,
        "isa": " ".join(sorted(needs.isa)) or None if needs is not None else None,
        "custom_ops": len(case.contract.custom_ops) if case.contract is not None else None,
    }


def _of_host(host: Host) -> dict[str, Fact | None]:
    torch = host.torch
    return {
        "host_torch": torch.version if torch is not None else None,
        "host_cuda": torch.cuda if torch is not None else None,
        "host_machine": host.machine or None,
        "host_isa": next((name for flag, name in _ISA if flag in host.cpu_flags), None),
        "host_gpu": host.gpus[0].name if host.gpus else None,
        "host_glibc": host.glibc,
    }
