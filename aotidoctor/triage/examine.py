"""Examine a case by child runs: recover a missing contract, probe, name the cause, and treat it.

Then the chains of several child runs: values of kernels from a recompiled package that prints them (for hosts where
they cannot be followed otherwise), launches that print, and inputs that shrink as far as the failure stays.

Values take two child runs: a compile with the value printer (or a cached package), and one call; see
``probes.printed_values`` and ``localize.printed``. Launches take up to seven, the most expensive question of all: a
compile with the printer at level 3, the failing call twice as it is and twice with blocking launches; where that
names a kernel, a compile with level 2 for that kernel alone, and one call; see ``probes.printed_launches``. Shrinking
takes one child run per question; see ``localize.smaller`` and ``probes.shrink``. Imported only by commands that run
the model.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.localize.bisection import (
    CuttableSize,
    DimRange,
    DimRanges,
    SmallestSizes,
    dim_cuts,
    search_smallest,
    sizes_of,
    steps_of,
)
from aotidoctor.localize.comparison import compare_code
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.jobs import change_fields
from aotidoctor.model.report import Diagnosis
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes import blame, mutation, printed_launches, printed_values, recompiled, shrink
from aotidoctor.probes.probe import Probe, unasked
from aotidoctor.probes.recompiled import compile_of
from aotidoctor.probes.reference_findings import of_another_program
from aotidoctor.probes.settings_took_effect import with_effect
from aotidoctor.triage import recompile_and_bisect, treated_run
from aotidoctor.triage.compile_cache import CachedCompile, CompileCache, open_cache
from aotidoctor.triage.recompile_and_bisect import PATIENCE, ask_planned, model_in, obtain_package
from aotidoctor.triage.run_probes import check_probe_names, history_of, recover_contract, run_probes, skip_probes
from aotidoctor.triage.static_checks import Session, name_causes, run_checks

# Values of kernels.

VALUES_PROBE = printed_values.PROBE


def print_values(session: Session, cache: CompileCache | None = None) -> None:
    """Ask it, if nothing else told; adds its findings."""
    ask_planned(session, VALUES_PROBE, lambda plan: _print_values(session, cache or open_cache(), plan))


def _print_values(session: Session, cache: CompileCache, plan: Request) -> None:
    kept = printing_package(session, cache, VALUES_PROBE, plan)
    if kept is None:
        return
    outcome = session.run(printed_values.call_request(session.case, str(kept.package), compile_of(plan).printer))
    if outcome is None:
        session.leave_out(VALUES_PROBE.code, VALUES_PROBE.name, session.refusal())
        return
    read_kernel_values(session, VALUES_PROBE, outcome, kept.seconds + outcome.seconds)


def printing_package(session: Session, cache: CompileCache, probe: Probe, request: Request) -> CachedCompile | None:
    """The package that ``request`` describes, where what it prints speaks of this one."""
    session.begins(f"{probe.name}: {PATIENCE}")
    kept = obtain_package(session, cache, request)
    reason = why_unfit(session, str(kept.package), compile_of(request).printer) if kept is not None else None
    if reason is None:
        return kept
    session.leave_out(probe.code, probe.name, reason)
    return None


def read_kernel_values(session: Session, probe: Probe, outcome: Outcome, seconds: float) -> Evidence:
    """Keep what was printed; the first finding."""
    found = list(probe.read(session.case, history_of(session), outcome))
    session.add(found)
    session.ended(probe.name, seconds, found[0].observed)
    return found[0]


def why_unfit(session: Session, package: str, level: int) -> str | None:
    """Why what that package prints would not speak of this one; None where it does."""
    model, contract = model_in(package)
    features = model.shared_objects[0].features if model is not None and model.shared_objects else None
    if features is None or features.printer_level != level:
        return f"the value printer of level {level} was not compiled in"
    code = compare_code(session.case.model, session.case.contract, model, contract)
    if code.same_kernels is not True:
        return "the recompiled program has different kernels, so its values cannot be attributed to this package"
    return None


# Launches of kernels, to see which one is the last.

LAUNCHES_PROBE = printed_launches.PROBE


def print_launches(session: Session, cache: CompileCache | None = None) -> None:
    """Ask it, if no cheaper probe named the kernel; adds its findings."""
    ask_planned(session, LAUNCHES_PROBE, lambda plan: _print_launches(session, cache or open_cache(), plan))


def _print_launches(session: Session, cache: CompileCache, plan: Request) -> None:
    kept = printing_package(session, cache, LAUNCHES_PROBE, plan)
    if kept is None:
        return
    requests = printed_launches.call_requests(session.case, history_of(session), str(kept.package))
    outcomes = [outcome for request in requests if (outcome := _run_call(session, request)) is not None]
    if len(outcomes) < len(requests):
        session.leave_out(LAUNCHES_PROBE.code, LAUNCHES_PROBE.name, session.refusal())
        return
    found = read_kernel_values(
        session, LAUNCHES_PROBE, outcomes[-1], kept.seconds + sum(outcome.seconds for outcome in outcomes)
    )
    if found.kind in printed_launches.NAMED and found.subject is not None:
        _print_kernel_values(session, cache, found.subject)


def _print_kernel_values(session: Session, cache: CompileCache, kernel: str) -> None:
    """What the kernel that fails got."""
    kept = printing_package(session, cache, LAUNCHES_PROBE, printed_launches.values_request(session.case, kernel))
    if kept is None:
        return
    level, name = printed_launches.PRINT_VALUES, printed_launches.VALUES
    request = printed_launches.call_request(session.case, history_of(session), str(kept.package), level, name)
    outcome = _run_call(session, request)
    if outcome is None:
        session.leave_out(LAUNCHES_PROBE.code, name, session.refusal())
        return
    read_kernel_values(session, LAUNCHES_PROBE, outcome, kept.seconds + outcome.seconds)


def _run_call(session: Session, request: Request) -> Outcome | None:
    outcome = session.run(request)
    if outcome is not None:
        session.outcomes[request.probe] = outcome
    return outcome


# Inputs of a failing call.

SHRINK_PROBE = shrink.PROBE


@dataclass(slots=True)
class _ShrinkAnswers:
    """The search so far: the last run that failed alike, and what it was given."""

    plan: Request
    sizes: Sequence[CuttableSize]
    wanted: shrink.Signature
    last: Outcome
    parts: DimRanges
    runs: int = 0
    seconds: float = 0.0
    answers: dict[tuple[tuple[str, DimRange], ...], bool] = field(default_factory=dict)


def shrink_inputs(session: Session) -> None:
    """Ask it; adds its finding."""
    if session.case.options.shrink:
        ask_planned(session, SHRINK_PROBE, lambda plan: _shrink(session, plan))


def _shrink(session: Session, plan: Request) -> None:
    plain = session.outcomes["plain_run"]
    wanted = shrink.signature_of(session.case, plain)
    if wanted is None:
        return
    sizes = sizes_of(session.case)
    whole = {one.name: DimRange(start=0, size=one.value) for one in sizes}
    search = _ShrinkAnswers(plan=plan, sizes=sizes, wanted=wanted, last=plain, parts=whole)
    session.begins(SHRINK_PROBE.name)
    end = _search(session, search)
    if end is None:
        session.add(
            [shrink.finding(sizes, SmallestSizes(parts=search.parts), search.last, search.runs, finished=False)]
        )
        session.leave_out(SHRINK_PROBE.code, SHRINK_PROBE.name, f"{session.refusal()}; not finished")
    else:
        session.add([shrink.finding(sizes, end, search.last, search.runs)])
    session.ended(SHRINK_PROBE.name, search.seconds, session.findings[-1].observed)


def _search(session: Session, asked: _ShrinkAnswers) -> SmallestSizes | None:
    """To its end; None when there was no time for it."""
    search = search_smallest(asked.sizes)
    try:
        parts = next(search)
        while True:
            answer = _fails(session, asked, parts)
            if answer is None:
                return None
            parts = search.send(answer)
    except StopIteration as end:
        found: SmallestSizes = end.value
        return found


def _fails(session: Session, asked: _ShrinkAnswers, parts: DimRanges) -> bool | None:
    """Whether the failure stays; None when it could not be asked."""
    key = tuple(parts.items())
    if key not in asked.answers:
        payload = change_fields(asked.plan.payload, {"treatment": tuple(steps_of(dim_cuts(asked.sizes, parts)))})
        outcome = session.run(
            replace(
                asked.plan,
                payload=payload,
                purpose="with " + ", ".join(f"{name} = {part.size}" for name, part in parts.items()),
            )
        )
        if outcome is None:
            return None
        asked.runs += 1
        asked.seconds += outcome.seconds
        failed = shrink.signature_of(session.case, outcome) == asked.wanted
        asked.answers[key] = failed
        if failed:
            asked.last, asked.parts = outcome, parts
    return asked.answers[key]


# Examination.

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
            return treated_run.apply_verdicts(name_causes(session), verdicts), False
        run_probes(session, but=FIRST)
        return _treat_causes(session), False
    except KeyboardInterrupt:
        return name_causes(session), True


def _check(session: Session) -> None:
    """All checks, with a contract from the loaded code where nothing else tells it."""
    if session.case.contract is None:
        recover_contract(session)
    run_checks(session)


def _treated_early(session: Session) -> treated_run.TreatmentVerdicts | None:
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
    verdicts = treated_run.treat(session, diagnoses[:1], quiet=True)
    return verdicts if diagnoses[0].cause in verdicts.confirmed else None


def compare_runs(session: Session) -> tuple[tuple[Diagnosis, ...], bool]:
    """What a comparison with the reference needs, and no treatment."""
    session.judge_effect = with_effect
    try:
        _check(session)
        run_probes(session, only=COMPARING)
        _accept_intended_mutations(session)
        return name_causes(session), False
    except KeyboardInterrupt:
        return name_causes(session), True


def _treat_causes(session: Session) -> tuple[Diagnosis, ...]:
    _accept_intended_mutations(session)
    diagnoses = name_causes(session)
    verdicts = treated_run.treat_in_emulation(session, diagnoses) or treated_run.treat(session, diagnoses)
    if verdicts.harmless:
        session.findings = treated_run.demote_harmless(session.findings, verdicts.harmless)
    if verdicts.harmless or verdicts.refuted:
        diagnoses = name_causes(session, refuted=verdicts.refuted)
    if _compile_again(session, verdicts.confirmed):
        diagnoses = name_causes(session, refuted=verdicts.refuted)
        proven = {**recompile_and_bisect.recompile_proof(session), **recompile_and_bisect.bisect_proof(session)}
        shown = tuple(cause for cause in verdicts.shown if cause not in proven)
        known = verdicts.confirmed
        how = {cause: f"{known[cause]}; {words}" if cause in known else words for cause, words in proven.items()}
        verdicts = replace(verdicts, confirmed={**known, **how}, shown=shown)
    shrink_inputs(session)
    return treated_run.apply_verdicts(diagnoses, verdicts)


def _accept_intended_mutations(session: Session) -> None:
    session.findings[:] = mutation.as_the_program(session.findings, session.outcomes.get("reference"))


def _compile_again(session: Session, confirmed: Collection[str]) -> bool:
    """What packages tell that are made of the exported program here; whether that found anything."""
    known = len(session.findings)
    print_values(session)
    if recompile_and_bisect.RECOMPILE_CAUSE in confirmed and of_another_program(session.findings):
        session.not_checked.append(unasked(recompiled.CODE, recompiled.NAME, ANOTHER))
    elif (made := recompile_and_bisect.recompile(session)) is not None:
        recompile_and_bisect.bisect(session, made)
    print_launches(session)
    return len(session.findings) > known
