"""Examine a case by child runs: recover a missing contract, probe, name the cause, and treat it.

Then the chains of several child runs: values of kernels from a recompiled package that prints them (for hosts where
they cannot be followed otherwise), launches that print, and inputs that shrink as far as the failure stays.

Values take two child runs: a compile with the value printer (or a cached package), and one call; see
``probes.printed_values``. Launches take up to seven, more than any other question: a compile with the printer at
level 3, the failing call twice as it is and twice with blocking launches; where that names a kernel, a compile with
level 2 for that kernel alone, and one call; see ``probes.printed_launches``. Shrinking takes one child run per
question; see ``localize.bisection`` and ``probes.shrink``. Imported only by commands that run the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

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
from aotidoctor.localize.stages import AGREES, UNSEEN, outcome_name, read_stage
from aotidoctor.model.case import user_function
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.jobs import change_fields
from aotidoctor.model.report import Diagnosis
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes import (
    blame,
    compiler_bisect,
    mutation,
    printed_launches,
    printed_values,
    recompiled,
    shrink,
    stages,
)
from aotidoctor.probes.payload import inputs_source
from aotidoctor.probes.probe import Probe, unasked
from aotidoctor.probes.recompiled import compile_of
from aotidoctor.probes.reference_findings import is_another_program
from aotidoctor.probes.tool_effects import add_effect
from aotidoctor.probes.values import with_finite_inputs
from aotidoctor.triage import recompile_and_bisect, treated_run
from aotidoctor.triage.compile_cache import CachedCompile, CompileCache, open_cache
from aotidoctor.triage.open_case import read_reference
from aotidoctor.triage.recompile_and_bisect import PATIENCE, model_in, obtain_package, run_planned
from aotidoctor.triage.run_probes import check_probe_names, recover_contract, run_probes, skip_probes
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes, run_checks
from aotidoctor.triage.try_remedies import ProgramSource, try_remedies

# Values of kernels.
VALUES_PROBE = printed_values.PROBE


def print_values(session: Session, cache: CompileCache | None = None) -> None:
    """Print values of kernels, if no other probe found them; adds findings."""
    run_planned(session, VALUES_PROBE, lambda plan: _print_values(session, cache or open_cache(), plan))


def _print_values(session: Session, cache: CompileCache, plan: Request) -> None:
    compiled = printing_package(session, cache, VALUES_PROBE, plan)
    if compiled is None:
        return
    outcome = session.run(printed_values.call_request(session.case, str(compiled.package), compile_of(plan).printer))
    if outcome is None:
        session.leave_out(VALUES_PROBE.code, VALUES_PROBE.name, session.refusal())
        return
    read_kernel_values(session, VALUES_PROBE, outcome, compiled.seconds + outcome.seconds)


def printing_package(session: Session, cache: CompileCache, probe: Probe, request: Request) -> CachedCompile | None:
    """The package that ``request`` describes; None where its values do not hold for this one."""
    session.begins(f"{probe.name}: {PATIENCE}")
    compiled = obtain_package(session, cache, request)
    reason = why_unfit(session, str(compiled.package), compile_of(request).printer) if compiled is not None else None
    if reason is None:
        return compiled
    session.leave_out(probe.code, probe.name, reason)
    return None


def read_kernel_values(session: Session, probe: Probe, outcome: Outcome, seconds: float) -> Evidence:
    """Add findings from what was printed; returns the first."""
    found = list(probe.read(session.case, session.history(), outcome))
    session.add(found)
    session.ended(probe.name, seconds, found[0].observed)
    return found[0]


def why_unfit(session: Session, package: str, level: int) -> str | None:
    """Reason why the values that ``package`` prints do not hold for this one; None where they do."""
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
    """Print launches, if no cheaper probe named the kernel; adds findings."""
    run_planned(session, LAUNCHES_PROBE, lambda plan: _print_launches(session, cache or open_cache(), plan))


def _print_launches(session: Session, cache: CompileCache, plan: Request) -> None:
    compiled = printing_package(session, cache, LAUNCHES_PROBE, plan)
    if compiled is None:
        return
    requests = printed_launches.call_requests(session.case, session.history(), str(compiled.package))
    outcomes = [outcome for request in requests if (outcome := _run_call(session, request)) is not None]
    if len(outcomes) < len(requests):
        session.leave_out(LAUNCHES_PROBE.code, LAUNCHES_PROBE.name, session.refusal())
        return
    found = read_kernel_values(
        session, LAUNCHES_PROBE, outcomes[-1], compiled.seconds + sum(outcome.seconds for outcome in outcomes)
    )
    if found.kind not in printed_launches.NAMED or found.subject is None:
        return
    # The arguments of the kernel that fails.
    request = printed_launches.values_request(session.case, found.subject)
    compiled = printing_package(session, cache, LAUNCHES_PROBE, request)
    if compiled is None:
        return
    level, name = printed_launches.PRINT_VALUES, printed_launches.VALUES
    request = printed_launches.call_request(session.case, session.history(), str(compiled.package), level, name)
    outcome = _run_call(session, request)
    if outcome is None:
        session.leave_out(LAUNCHES_PROBE.code, name, session.refusal())
        return
    read_kernel_values(session, LAUNCHES_PROBE, outcome, compiled.seconds + outcome.seconds)


def _run_call(session: Session, request: Request) -> Outcome | None:
    outcome = session.run(request)
    if outcome is not None:
        session.outcomes[request.probe] = outcome
    return outcome


# Inputs of a failing call.
SHRINK_PROBE = shrink.PROBE


@dataclass(slots=True)
class _ShrinkAnswers:
    """The search so far, with the last run that failed alike and its inputs."""

    plan: Request
    sizes: Sequence[CuttableSize]
    wanted: shrink.Signature
    last: Outcome
    parts: DimRanges
    runs: int = 0
    seconds: float = 0.0
    answers: dict[tuple[tuple[str, DimRange], ...], bool] = field(default_factory=dict)


def shrink_inputs(session: Session) -> None:
    """Shrink the inputs of a failing call, with ``--shrink``; adds its finding."""
    if session.case.options.shrink:
        run_planned(session, SHRINK_PROBE, lambda plan: _shrink(session, plan))


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
        smallest = SmallestSizes(parts=search.parts)
        session.add([shrink.finding(sizes, smallest, search.last, search.runs, finished=False)])
        session.leave_out(SHRINK_PROBE.code, SHRINK_PROBE.name, f"{session.refusal()}; not finished")
    else:
        session.add([shrink.finding(sizes, end, search.last, search.runs)])
    session.ended(SHRINK_PROBE.name, search.seconds, session.findings[-1].observed)


def _search(session: Session, search: _ShrinkAnswers) -> SmallestSizes | None:
    """Search to the end; None when there was no time for it."""
    questions = search_smallest(search.sizes)
    try:
        parts = next(questions)
        while True:
            answer = _fails(session, search, parts)
            if answer is None:
                return None
            parts = questions.send(answer)
    except StopIteration as end:
        found: SmallestSizes = end.value
        return found


def _fails(session: Session, search: _ShrinkAnswers, parts: DimRanges) -> bool | None:
    """Whether the failure stays; None when there was no run."""
    key = tuple(parts.items())
    if key not in search.answers:
        payload = change_fields(search.plan.payload, {"treatment": tuple(steps_of(dim_cuts(search.sizes, parts)))})
        purpose = "with " + ", ".join(f"{name} = {part.size}" for name, part in parts.items())
        outcome = session.run(replace(search.plan, payload=payload, purpose=purpose))
        if outcome is None:
            return None
        search.runs += 1
        search.seconds += outcome.seconds
        failed = shrink.signature_of(session.case, outcome) == search.wanted
        search.answers[key] = failed
        if failed:
            search.last, search.parts = outcome, parts
    return search.answers[key]


# Stages between the model and its package.
STAGES_PROBE = stages.PROBE


@contextmanager
def case_with_stages(session: Session) -> Iterator[None]:
    """Follow the stages; in the block a program that they exported here is that of a case without one."""
    case = session.case
    with TemporaryDirectory(prefix="aotidoctor-", ignore_cleanup_errors=True) as room:
        run_planned(session, STAGES_PROBE, lambda _plan: follow_stages(session, room))
        program = f"{room}/exported.pt2"
        if case.reference is None and Path(program).is_file():
            options = replace(case.options, reference=program)
            session.case = replace(case, options=options, reference=read_reference(program))
        try:
            yield
        finally:
            session.case = case


def follow_stages(session: Session, room: str | None = None) -> None:
    """Hold each stage against the one before, the cheapest first, until one breaks it; adds the finding."""
    outcome = None
    while (request := stages.next_request(session.case, session.history(), room)) is not None:
        name = outcome_name(stages.stage_of(request))
        session.begins(name)
        outcome = session.run(request)
        if outcome is None:
            session.leave_out(STAGES_PROBE.code, name, session.refusal())
            break
        session.outcomes[name] = outcome
        row = read_stage(stages.stage_of(request), outcome)
        session.ended(name, outcome.seconds, f"{row.verdict}: {row.observed}", ok=row.verdict == AGREES)
        if row.verdict == UNSEEN:
            session.leave_out(STAGES_PROBE.code, name, row.observed)
    if outcome is not None:
        session.add(stages.read(session.case, session.history(), outcome))


# Examination. These show the failure as it is, and do not repeat a call that failed.
FIRST = ("plain_run", "blame", "loaded_weights", "mutation", "values")

CONFIRMED = (
    "the cause is named and its treatment confirmed it; run it by name with --probes, or with aotidoctor localize"
)

ANOTHER = "the package comes from a different program and the difference is confirmed: compiling would add nothing"

# Whether it answers at all, and the same each time: only then can the answer be compared with the reference's.
COMPARING = ("plain_run", "loaded_weights", "mutation", "values", "again", "memory_fill", "emulation", "reference")


def examine(session: Session) -> tuple[tuple[Diagnosis, ...], bool]:
    """Run checks, probes and treatments: the diagnoses, and whether it was interrupted and they are incomplete."""
    check_probe_names(session.case)
    session.judge_effect = add_effect
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
    """Run all checks, with a contract from the loaded code where there is no other."""
    if session.case.contract is None:
        recover_contract(session)
    run_checks(session)


def _treated_early(session: Session) -> treated_run.TreatmentVerdicts | None:
    """Treat a failure whose message names the faulty element; None unless the treatment proves it.

    No other probe could then change the diagnosis. With ``--localize``, ``--shrink``, ``--probes`` or ``--model`` they
    run all the same.
    """
    options = session.case.options
    wanted = options.localize or options.shrink or options.rungs is not None or options.model is not None
    if wanted or not session.history().has(blame.CODE):
        return None
    diagnoses = name_causes(session)
    named = {item.id for item in session.findings if item.code == blame.CODE and item.facts.get("path") is not None}
    if not diagnoses or not named & set(diagnoses[0].evidence):
        return None
    verdicts = treated_run.treat(session, diagnoses[:1], quiet=True)
    return verdicts if diagnoses[0].cause in verdicts.confirmed else None


def compare_runs(session: Session) -> tuple[tuple[Diagnosis, ...], bool]:
    """Run what a comparison with the reference needs, and no treatment."""
    session.judge_effect = add_effect
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
    if "input-nan" in verdicts.refuted:
        session.findings = with_finite_inputs(session.findings)
    if verdicts.harmless or verdicts.refuted:
        diagnoses = name_causes(session, refuted=verdicts.refuted)
    before = len(session.findings)
    given = session.case.reference
    with case_with_stages(session):
        print_values(session)
        if recompile_and_bisect.RECOMPILE_CAUSE in verdicts.confirmed and is_another_program(session.findings):
            session.not_checked.append(unasked(recompiled.CODE, recompiled.NAME, ANOTHER))
        elif (made := recompile_and_bisect.recompile(session)) is not None and given is not None:
            recompile_and_bisect.bisect(session, made)
        print_launches(session)
    if len(session.findings) > before:
        diagnoses = name_causes(session, refuted=verdicts.refuted)
        proven = {
            **recompile_and_bisect.recompile_proof(session),
            **stages.proof(session.findings),
            **recompile_and_bisect.bisect_proof(session),
        }
        known = verdicts.confirmed
        how = {cause: f"{known[cause]}; {words}" if cause in known else words for cause, words in proven.items()}
        if known.get(recompile_and_bisect.RECOMPILE_CAUSE) and session.history().has(compiler_bisect.CODE, "kernel"):
            # The program's values in place of the kernel's heal it: proof of the kernel, whoever is blamed for it.
            how.setdefault(recompile_and_bisect.BISECT_CAUSE, known[recompile_and_bisect.RECOMPILE_CAUSE])
        no_remedies = tuple(cause for cause in verdicts.shown if cause not in proven)
        bisected = recompile_and_bisect.bisect_proof(session)
        no_remedies += tuple(cause for cause in stages.untried_causes(session.findings) if cause not in bisected)
        verdicts = replace(verdicts, confirmed={**known, **how}, shown=no_remedies)
    shrink_inputs(session)
    named, options = treated_run.apply_verdicts(diagnoses, verdicts), session.case.options
    program = options.model or options.reference
    if program is None:
        return named
    is_function = user_function(program) is not None
    source = ProgramSource(program=program, is_function=is_function, inputs=inputs_source(session.case))
    return try_remedies(session, named, source)


def _accept_intended_mutations(session: Session) -> None:
    session.findings[:] = mutation.as_the_program(session.findings, session.outcomes.get("reference"))
