"""The dynamic half: recover a missing contract, probe, name the cause, treat it. Imported by ``run`` only."""

from __future__ import annotations

from dataclasses import replace

from aotidoctor import bisection, confirmation, launch_printing, printing, recompilation, shrinking
from aotidoctor.climb import Climb, name_causes, run_checks
from aotidoctor.ladder import check_rung_names, run_probes
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.probes.effects import with_effect
from aotidoctor.recovery import recover_contract

# Is it an answer at all, and the same one each time? Then it can be held against the reference's.
COMPARING = ("plain_run", "loaded_weights", "mutation", "values", "again", "reference")


def examine(climb: Climb) -> tuple[tuple[Diagnosis, ...], bool]:
    """Checks, probes, causes, treatment, and whether it was interrupted: then with what was found until then."""
    check_rung_names(climb.case)
    climb.judge_effect = with_effect
    try:
        if climb.case.contract is None:
            recover_contract(climb)
        run_checks(climb)
        run_probes(climb)
        return _treated(climb), False
    except KeyboardInterrupt:
        return name_causes(climb), True


def compare(climb: Climb) -> tuple[tuple[Diagnosis, ...], bool]:
    """What a comparison with the reference needs, and no treatment."""
    climb.judge_effect = with_effect
    try:
        if climb.case.contract is None:
            recover_contract(climb)
        run_checks(climb)
        run_probes(climb, only=COMPARING)
        return name_causes(climb), False
    except KeyboardInterrupt:
        return name_causes(climb), True


def _treated(climb: Climb) -> tuple[Diagnosis, ...]:
    diagnoses = name_causes(climb)
    verdicts = confirmation.treat(climb, diagnoses)
    if verdicts.harmless:
        climb.findings = confirmation.demote(climb.findings, verdicts.harmless)
    if verdicts.harmless or verdicts.refuted:
        diagnoses = name_causes(climb, refuted=verdicts.refuted)
    if _compile_again(climb):
        diagnoses = name_causes(climb, refuted=verdicts.refuted)
        proven = {**recompilation.proof(climb), **bisection.proof(climb)}
        verdicts = replace(verdicts, confirmed={**verdicts.confirmed, **proven})
    shrinking.shrink_inputs(climb)
    return confirmation.apply(diagnoses, verdicts)


def _compile_again(climb: Climb) -> bool:
    """What packages tell that are made of the exported program here; whether that found anything."""
    known = len(climb.findings)
    printing.print_values(climb)
    made = recompilation.recompile(climb)
    if made is not None:
        bisection.bisect(climb, made)
    launch_printing.print_launches(climb)
    return len(climb.findings) > known
