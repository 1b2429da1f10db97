"""The dynamic half: recover a missing contract, probe, name the cause, treat it. Imported by ``run`` only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.probes import blame, mutation, recompiled
from aotidoctor.probes.effects import with_effect
from aotidoctor.probes.probe import unasked
from aotidoctor.probes.reference_findings import of_another_program
from aotidoctor.triage import emulated, treat
from aotidoctor.triage.chains import bisect_compiler, print_launches, print_values, recompile, shrink_inputs
from aotidoctor.triage.recover_contract import recover_contract
from aotidoctor.triage.run_probes import check_probe_names, history_of, run_probes, skip_probes
from aotidoctor.triage.session import Session, name_causes, run_checks

# Is it an answer at all, and the same one each time? Then it can be held against the reference's.
FIRST = ("plain_run", "blame", "loaded_weights", "mutation", "values")
"""What shows the failure as it is; no further run of a call that failed."""

CONFIRMED = (
    "the cause is named and its treatment confirmed it; run it by name with --probes, or with aotidoctor localize"
)

ANOTHER = "the package comes from a different program and the difference is confirmed: compiling would add nothing"

COMPARING = ("plain_run", "loaded_weights", "mutation", "values", "again", "memory_fill", "emulation", "reference")


def examine(session: Session) -> tuple[tuple[Diagnosis, ...], bool]:
    """Checks, probes, causes, treatment, and whether it was interrupted: then with what was found until then."""
    check_probe_names(session.case)
    session.judge_effect = with_effect
    try:
        _check(session)
        run_probes(session, only=FIRST)
        verdicts = _treated_early(session)
        if verdicts is not None:
            skip_probes(session, CONFIRMED, but=FIRST)
            return treat.apply(name_causes(session), verdicts), False
        run_probes(session, but=FIRST)
        return _treated(session), False
    except KeyboardInterrupt:
        return name_causes(session), True


def _check(session: Session) -> None:
    """All checks, with a contract from the loaded code where nothing else tells it."""
    if session.case.contract is None:
        recover_contract(session)
    run_checks(session)


def _treated_early(session: Session) -> treat.Verdicts | None:
    """The verdict on a failure whose words name the element that is at fault, if its treatment proves it.

    Nothing that the other probes find could then change the diagnosis. A command that asks for the place, or for
    probes by name, gets them all the same.
    """
    options = session.case.options
    if options.localize or options.shrink or options.rungs is not None or not history_of(session).has(blame.CODE):
        return None
    diagnoses = name_causes(session)
    named = {item.id for item in session.findings if item.code == blame.CODE and item.facts.get("path") is not None}
    if not diagnoses or not named & set(diagnoses[0].evidence):
        return None
    verdicts = treat.treat(session, diagnoses[:1], quiet=True)
    return verdicts if diagnoses[0].cause in verdicts.confirmed else None


def compare(session: Session) -> tuple[tuple[Diagnosis, ...], bool]:
    """What a comparison with the reference needs, and no treatment."""
    session.judge_effect = with_effect
    try:
        _check(session)
        run_probes(session, only=COMPARING)
        _leave_what_is_meant(session)
        return name_causes(session), False
    except KeyboardInterrupt:
        return name_causes(session), True


def _treated(session: Session) -> tuple[Diagnosis, ...]:
    _leave_what_is_meant(session)
    diagnoses = name_causes(session)
    verdicts = emulated.treat(session, diagnoses) or treat.treat(session, diagnoses)
    if verdicts.harmless:
        session.findings = treat.demote(session.findings, verdicts.harmless)
    if verdicts.harmless or verdicts.refuted:
        diagnoses = name_causes(session, refuted=verdicts.refuted)
    if _compile_again(session, verdicts.confirmed):
        diagnoses = name_causes(session, refuted=verdicts.refuted)
        proven = {**recompile.proof(session), **bisect_compiler.proof(session)}
        shown = tuple(cause for cause in verdicts.shown if cause not in proven)
        known = verdicts.confirmed
        how = {cause: f"{known[cause]}; {words}" if cause in known else words for cause, words in proven.items()}
        verdicts = replace(verdicts, confirmed={**known, **how}, shown=shown)
    shrink_inputs.shrink_inputs(session)
    return treat.apply(diagnoses, verdicts)


def _leave_what_is_meant(session: Session) -> None:
    session.findings[:] = mutation.as_the_program(session.findings, session.outcomes.get("reference"))


def _compile_again(session: Session, confirmed: Collection[str]) -> bool:
    """What packages tell that are made of the exported program here; whether that found anything."""
    known = len(session.findings)
    print_values.print_values(session)
    if recompile.CAUSE in confirmed and of_another_program(session.findings):
        session.not_checked.append(unasked(recompiled.CODE, recompiled.NAME, ANOTHER))
    elif (made := recompile.recompile(session)) is not None:
        bisect_compiler.bisect(session, made)
    print_launches.print_launches(session)
    return len(session.findings) > known
