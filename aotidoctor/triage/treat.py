"""Prove a cause by treating it: the failure must be there without the treatment and gone with it.

Three kinds of baseline, the first that applies:

- the plain run failed: the treated run must return;
- the plain run returned and the package's own input checks complained: they must be silent about the treated call;
- nothing complained: the treated call must give other outputs than the untreated one (that was the silent fault).

Where a reference is given, the treated outputs must also agree with it. A copy with other strides that leaves every
output bit as it was shows that the strides do not matter to this package: the finding becomes a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.checks import CHECKS
from aotidoctor.checks.package.facts import main_object
from aotidoctor.diagnosis.rank import confirm, is_guess, rerank
from aotidoctor.diagnosis.treatments import combine, plan_treatment
from aotidoctor.model.diagnosis import Diagnosis, Treatment
from aotidoctor.model.event import EventKind
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes import succeeded
from aotidoctor.probes.payload import run_of
from aotidoctor.readers.releases.built_by import built_by
from aotidoctor.readers.releases.shims import release_of
from aotidoctor.triage.session import Session
from aotidoctor.triage.trial import (
    CLEARING,
    CODE,
    MADE_UP,
    NAME,
    VERDICTS,
    Trial,
    evidence_of,
    judge,
    kind_of,
    nonfinite,
    same_failure,
)

# Steps that show what is wrong, with values that nobody meant. Where a user would take them, there is a command.
PROOFS = ("stand_in", "stand_in_operator", "fill_weights", "clamp_dim", "mend_offsets", "put_nodes", "put_zeros")
# A failure in one of these stages, or none at all, is judged by the first call.
BEFORE_SECOND = ("start", "import", "attach", "setup", "inputs", "load", "trace", "after_load", "run1")
# What is read beyond the end of an input differs with every setting: a failure that goes away proves nothing there.
BY_CHANCE = ("threading",)
# Importing a library does not always register its classes: a failure that stays proves nothing.
NEVER_REFUTED = ("pytree-class-missing",)
# Before, a package without its weights dies in the call even after they were loaded: there, and with later torch.
WEIGHTS_WORK = (2, 7)


@record
class Verdicts:
    """What the trials showed: causes confirmed (with how), refuted, and found harmless.

    ``shown`` are causes confirmed by something that is no remedy, such as a stand-in.
    """

    confirmed: dict[str, str]
    shown: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    emulated: bool = False


def treat(session: Session, diagnoses: Sequence[Diagnosis], *, quiet: bool = False) -> Verdicts:
    """Try the treatment of the first cause; with several faults at once, all of them together.

    ``quiet`` leaves unsaid that there is none to try: somebody will ask again.
    """
    baseline = _baseline(session)
    found = plans(session, diagnoses)
    if baseline is None or not found:
        if not quiet:
            _say_untreated(session, diagnoses, "there is no run to compare a treated one with" if found else None)
        return Verdicts(confirmed={})
    first = _try(session, found[0], baseline)
    if first is None:
        return Verdicts(confirmed={})
    if first.harmless:
        return Verdicts(confirmed={}, harmless=(found[0].cause,))
    if first.healed:
        return Verdicts(confirmed={found[0].cause: first.how}, shown=_no_remedies(found[:1]))
    return _together(session, found, baseline, first)


def apply(diagnoses: Sequence[Diagnosis], verdicts: Verdicts) -> tuple[Diagnosis, ...]:
    """The diagnoses with what the trials confirmed, proven ones first."""
    return rerank(
        [
            confirm(
                item,
                verdicts.confirmed[item.cause],
                remedied=item.cause not in verdicts.shown,
                emulated=verdicts.emulated,
            )
            if item.cause in verdicts.confirmed
            else item
            for item in diagnoses
        ]
    )


def demote(findings: Sequence[Evidence], harmless: Sequence[str]) -> list[Evidence]:
    """Findings of harmless causes become warnings, and the input checks' complaint about them with them."""
    names = {cause.replace("-", "_") for cause in harmless}
    codes = {check.code for check in CHECKS if check.name in names} | {"AD-RUN-003"}
    return [_demoted(item, codes) for item in findings]


def _demoted(item: Evidence, codes: set[str]) -> Evidence:
    if item.code not in codes or item.severity is not Severity.ERROR:
        return item
    note = f"{item.message} (harmless here: the repaired call gives bit-identical outputs)"
    return replace(item, severity=Severity.WARN, message=note, facts={**item.facts, "harmless": True})


def plans(session: Session, diagnoses: Sequence[Diagnosis]) -> list[Treatment]:
    """Treatments of the error diagnoses that have one, in rank order, one per name."""
    made: dict[str, Treatment] = {}
    for item in diagnoses:
        if item.severity is not Severity.ERROR:
            continue
        if item.cause in BY_CHANCE and is_guess(item.cause, session.case):
            continue
        plan = plan_treatment(item.cause, session.case, session.findings)
        if plan is not None:
            made.setdefault(plan.name, plan)
    return list(made.values())


def _baseline(session: Session) -> Outcome | None:
    """The run in which the failure shows; the plain run where it shows in none."""
    plain, checked = session.outcomes.get("plain_run"), session.outcomes.get("check_inputs")
    if succeeded(plain) and checked is not None and not succeeded(checked):
        return checked
    return plain


def _together(session: Session, plans: Sequence[Treatment], baseline: Outcome, first: Trial) -> Verdicts:
    both = combine(plans)
    if len(plans) < 2 or both is None:
        fails_alike = _can_refute(session, plans[0].cause) and _refutes(plans[0], baseline, first.outcome)
        return Verdicts(confirmed={}, refuted=(plans[0].cause,) if fails_alike else ())
    trial = _try(session, both, baseline)
    if trial is None or not trial.healed:
        return Verdicts(confirmed={})
    how = f"{trial.how}, with {len(plans)} treatments together"
    return Verdicts(confirmed={plan.cause: how for plan in plans}, shown=_no_remedies(plans))


def _no_remedies(plans: Sequence[Treatment]) -> tuple[str, ...]:
    return tuple(
        plan.cause for plan in plans if not plan.command and any(step.get("op") in PROOFS for step in plan.steps)
    )


def _can_refute(session: Session, cause: str) -> bool:
    if cause != "weights-not-loaded":
        return cause not in NEVER_REFUTED
    case, torch = session.case, session.case.host.torch
    before = built_by(case.model, main_object(case)).before if case.model is not None else None
    old_torch = torch is not None and (release_of(torch.version) or WEIGHTS_WORK) < WEIGHTS_WORK
    return not old_torch and not (before is not None and before <= WEIGHTS_WORK)


def _refutes(plan: Treatment, baseline: Outcome, treated: Outcome) -> bool:
    """The treated run fails as before; or it has as many NaN as before, where it should have none."""
    if plan.cause in CLEARING and succeeded(baseline) and succeeded(treated):
        return 0 < nonfinite(baseline) <= nonfinite(treated)
    return same_failure(baseline, treated)


def _try(session: Session, treatment: Treatment, baseline: Outcome) -> Trial | None:
    request = _request(session, treatment, baseline)
    tried = next((trial for trial in session.trials if trial.outcome.request.payload == request.payload), None)
    if tried is not None and tried.baseline is baseline:
        return tried
    session.begins(treatment.name)
    outcome = session.run(request)
    if outcome is None:
        session.leave_out(CODE, NAME, session.refusal())
        return None
    trial = judge(session, treatment, baseline, outcome)
    session.trials.append(trial)
    session.add([evidence_of(trial)])
    verdict = VERDICTS[kind_of(trial)]
    session.ended(treatment.name, outcome.seconds, verdict, ok=trial.healed, kind=EventKind.TREATMENT)
    return trial


def _request(session: Session, treatment: Treatment, baseline: Outcome) -> Request:
    payload = replace(run_of(baseline), treatment=tuple(treatment.steps))
    if succeeded(baseline) or baseline.stage in BEFORE_SECOND:
        payload = replace(payload, calls=1)
    if session.case.options.reference is not None and treatment.name not in MADE_UP:
        payload = replace(payload, reference=session.case.options.reference)
    return replace(baseline.request, probe=NAME, payload=payload, purpose=treatment.text)


def _say_untreated(session: Session, diagnoses: Sequence[Diagnosis], reason: str | None) -> None:
    if not diagnoses:
        return
    told = reason or f"there is no unambiguous treatment of {diagnoses[0].cause} to try"
    session.leave_out(CODE, NAME, told)
