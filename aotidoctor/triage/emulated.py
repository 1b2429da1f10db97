"""What follows from an emulated run: what it left out, what it stands for, and treatments tried in emulation.

A treatment that is tried in emulation is judged in emulation: the fault must be there without it and gone with it, with
everything carried out. What is confirmed so is never called confirmed without that word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.emulated import read_emulation
from aotidoctor.model.diagnosis import Diagnosis, Treatment
from aotidoctor.model.event import EventKind
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.run import Outcome
from aotidoctor.probes import emulation
from aotidoctor.probes.emulation import NAME, UNAVAILABLE
from aotidoctor.probes.payload import run_of
from aotidoctor.probes.probe import evidence
from aotidoctor.triage.session import Session
from aotidoctor.triage.treat import Verdicts, plans
from aotidoctor.triage.trial import CODE
from aotidoctor.triage.trial import NAME as TREATMENT

_STANDS_IN = {
    (UNAVAILABLE, ""): "it was emulated on the CPU instead",
    ("AD-IN-008", "device"): "in emulation, CPU tensors replace those of the device",
}


def note(session: Session, outcome: Outcome) -> None:
    """Say what was left out; that this host has no such device is no longer what ends the examination."""
    session.not_checked += emulation.skipped(outcome)
    found = read_emulation(outcome)
    if found is None or found.problem is not None:
        return
    session.findings = [_stands_in(item) for item in session.findings]


def _stands_in(item: Evidence) -> Evidence:
    """There is no such device here, and inputs lie on the CPU: in emulation neither is a fault."""
    words = _STANDS_IN.get((item.code, item.kind)) or _STANDS_IN.get((item.code, ""))
    if words is None or item.severity is not Severity.ERROR:
        return item
    facts = {**item.facts, "emulated": True}
    return replace(item, severity=Severity.WARN, message=f"{item.message}; {words}", facts=facts)


def treat(session: Session, diagnoses: Sequence[Diagnosis]) -> Verdicts | None:
    """The verdict of treatments tried in emulation; None where no fault was emulated or the GPU itself was there."""
    baseline = session.outcomes.get(NAME)
    if baseline is None or "plain_run" in session.outcomes or not emulation.is_bad(baseline):
        return None
    for plan in plans(session, diagnoses)[:2]:
        outcome = _try(session, plan, baseline)
        if outcome is None:
            break
        if emulation.went_through(outcome):
            how = f"its fault is there untreated ({baseline.id}) and gone treated ({outcome.id})"
            return Verdicts(confirmed={plan.cause: how}, emulated=True)
    return Verdicts(confirmed={}, emulated=True)


def _try(session: Session, treatment: Treatment, baseline: Outcome) -> Outcome | None:
    session.begins(treatment.name)
    payload = replace(run_of(baseline), watch=None, treatment=tuple(treatment.steps))
    outcome = session.run(replace(baseline.request, probe=TREATMENT, payload=payload, purpose=treatment.text))
    if outcome is None:
        return None
    healed = emulation.went_through(outcome)
    session.add(
        [
            evidence(
                CODE,
                "healed" if healed else "stayed",
                Severity.INFO,
                outcome,
                observed=f"{treatment.text}: {'no fault in emulation' if healed else 'the fault remained'}",
                expected="the fault gone",
                facts={"cause": treatment.cause, "treatment": treatment.name, "emulated": True},
            )
        ]
    )
    verdict = "healed" if healed else "the failure remained"
    session.ended(treatment.name, outcome.seconds, verdict, ok=healed, kind=EventKind.TREATMENT)
    return outcome
