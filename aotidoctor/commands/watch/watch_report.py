"""Report on a program that failed, from its packages, its output and its end (``aotidoctor watch``).

observed files ─► packages ─► case ─► static checks (with --inputs: triage as in ``run``) ──┐
its end ─► outcome ─► findings (core, stack) ─► --rerun: probes with other settings ───────┼─► one ranking ─► report
its output ─► classification ──────────────────────────────────────────────────────────────┘

The ranking has three sources: the output, the files, and the reruns.

1. A cause that several sources find is one cause, with all their evidence.
2. What a comparison found (the package's own input checks, inputs against the contract) explains what the output says
   of the same stage, where its playbook says so: the output then names the symptom, which is what it looked like.
3. What the output names happened; what only the files show may have nothing to do with it. So it comes after, unless
   it explains, by its playbook, what the output is not sure of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from io import BytesIO
from typing import TYPE_CHECKING

from aotidoctor.commands.watch.program_outcome import (
    FirstRun,
    Repeat,
    outcome_of,
    output_streams,
    record_call,
    run_repeats,
    unread_output,
    with_named_packages,
)
from aotidoctor.commands.watch.used_packages import examine_packages, program_facts, used_packages
from aotidoctor.diagnosis.playbooks import find_playbook
from aotidoctor.localize.culprit import localize
from aotidoctor.localize.debugger_output import read_backtrace
from aotidoctor.logs.diagnose_log import log_diagnoses, log_findings
from aotidoctor.logs.log_reading import read_log
from aotidoctor.logs.log_with_package import CHECKED, translate_findings
from aotidoctor.model.case import Options
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.model.report import Diagnosis, Event, EventKind, LogReading, OnEvent, Report, Status
from aotidoctor.model.run import Outcome, Signalled, WatchedProgram
from aotidoctor.probes import backtrace, blame, plain_run, watched_program
from aotidoctor.probes.probe import History, succeeded
from aotidoctor.triage.finish import Invocation, finish, is_lead
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes

if TYPE_CHECKING:
    from aotidoctor.commands.watch.program_outcome import RecordedCall, RunAgain
    from aotidoctor.model.inputs import InputSet


# The output, classified stream by stream.
@record
class ClassifiedOutput:
    """One stream: findings, the reading, and the causes that it names once it is part of a report."""

    evidence: tuple[Evidence, ...]
    reading: LogReading
    diagnoses: tuple[Diagnosis, ...] = ()


def read_output(watched: WatchedProgram, *, run: str = "") -> tuple[ClassifiedOutput, ...]:
    """Classify each stream; ``run`` is put before the names of the streams of a rerun."""
    prefix = f"{run} " if run else ""
    found = []
    for stream in output_streams(watched):
        reading = read_log(BytesIO(stream.text), f"{prefix}{stream.name}")
        found.append(ClassifiedOutput(evidence=tuple(log_findings(reading)), reading=reading))
    return tuple(found)


def add_output_findings(session: Session, output: ClassifiedOutput) -> ClassifiedOutput:
    """Add the evidence to the session, with the names of the package; return it with the ids that it got there."""
    evidence = output.evidence
    if session.case.contract is not None:
        named, _ = translate_findings(session.case, output.reading, evidence)
        evidence = tuple(named)
    known = len(session.findings)
    session.add(evidence)
    added = tuple(session.findings[known:])
    return replace(output, evidence=added, diagnoses=log_diagnoses(added))


def blame_input(session: Session, outcome: Outcome) -> Evidence | None:
    """Add the chain from the error message to an input to the session; its evidence, None if there is no chain."""
    if outcome.error is None or session.case.contract is None:
        return None
    # The probe reads the end of a run that calls the package, which this program has done itself.
    ended = plain_run.read_ending(plain_run.CODE, session.case, replace(outcome, stage="run1"))
    known = len(session.findings)
    session.add(blame.read(session.case, History(findings=(ended,)), outcome))
    return next(iter(session.findings[known:]), None)


def with_blame(named: Sequence[Diagnosis], chain: Evidence | None) -> list[Diagnosis]:
    """The causes that the output names, with the input that the chain leads to."""
    if chain is None:
        return list(named)
    return [
        replace(one, subject=one.subject or chain.subject, evidence=(*one.evidence, chain.id))
        if one.cause in CHECKED
        else one
        for one in named
    ]


# One ranking. A comparison with what the program itself passed, or the native stack of its death.
_OF_THIS_FAILURE = ("AD-IN-", "AD-RUN-")
_SURE = 0.8
_GROUPS = {"load": "@load", "host": "@load", "artifact": "@load", "run": "@run", "inputs": "@run", "output": "@output"}


def merge_causes(
    found: Sequence[Diagnosis], named: Sequence[Diagnosis], findings: Sequence[Evidence]
) -> tuple[Diagnosis, ...]:
    """Merge causes ``found`` in the files and by runs with those ``named`` by the output; both are ranked."""
    codes = {item.id: item.code for item in findings}
    # Each cause once, though several streams, or runs, name it.
    distinct: dict[str, Diagnosis] = {}
    for one in named:
        distinct[one.cause] = _join_causes(distinct[one.cause], [one]) if one.cause in distinct else one
    left = list(distinct.values())
    first: list[Diagnosis] = []
    for cause in found:
        if cause.severity is not Severity.ERROR:
            continue
        dynamic = any(codes.get(name, "").startswith(_OF_THIS_FAILURE) for name in cause.evidence)
        playbook = find_playbook(cause.playbook)
        explained = playbook.explains if playbook is not None else ()
        # Files alone do not outweigh output that names another cause for sure.
        gone = [
            one
            for one in left
            if one.cause == cause.cause
            or one.cause in explained
            or ((dynamic or one.confidence < _SURE) and _GROUPS.get(one.stage, "") in explained)
        ]
        left = [one for one in left if one not in gone]
        if dynamic or gone:
            seen = gone[0].looked_like if gone else cause.looked_like
            first.append(replace(_join_causes(cause, gone), looked_like=seen))
    left = [_join_causes(one, [other for other in found if other.cause == one.cause]) for one in left]
    known = {one.cause for one in (*first, *left)}
    others = [one for one in found if one.cause not in known]
    return tuple(replace(one, rank=rank) for rank, one in enumerate((*first, *left, *others), start=1))


def _join_causes(cause: Diagnosis, others: Sequence[Diagnosis]) -> Diagnosis:
    if not others:
        return cause
    evidence = tuple(dict.fromkeys(name for one in (cause, *others) for name in one.evidence))
    same = [one for one in others if one.cause == cause.cause]
    return replace(
        cause,
        evidence=evidence,
        subject=cause.subject or next((one.subject for one in same if one.subject), None),
        confidence=max(one.confidence for one in (cause, *same)),
    )


CODE = watched_program.CODE
RERUN = "--rerun runs the command again under diagnostic settings"
_RECORDING = "again, unchanged, with the calls of the package recorded"
_SETTLED = "the recorded call failed by itself, and a treatment of it confirmed the cause"
# Frames with these words mean that the program was inside a package.
_MODEL = ("AOTInductor", "/data/aotinductor/")


@record
class WatchRequest:
    """Options of a watch.

    ``inputs`` are for a triage, ``checked_inputs`` for a comparison only; ``live`` are inputs that exist as objects.
    ``package`` is examined in any case. ``again`` runs the command once more, None where the user did not request that
    (``no_again`` says how to); ``limit`` is the time of each such run in seconds. ``has_gdb``: a debugger is installed.
    """

    inputs: str | None = None
    checked_inputs: str | None = None
    package: str | None = None
    live: InputSet | None = None
    again: RunAgain | None = None
    no_again: str = RERUN
    limit: float = 60.0
    has_gdb: bool = False
    room: str | None = None
    options: Options = field(default_factory=Options)
    command: str = "watch"


def report_on_program(
    watched: WatchedProgram,
    request: WatchRequest,
    *,
    argv: tuple[str, ...],
    environ: Mapping[str, str],
    on_event: OnEvent | None = None,
) -> Report:
    """Build the report on a program that has ended."""
    watched = with_named_packages(watched)
    invocation = Invocation(request.command, argv, began=watched.started)
    outcome = outcome_of(watched, Repeat())
    recorded = _record_inputs(watched, outcome, request, environ, on_event)
    failing = recorded is not None and recorded.is_failing
    package = request.package or (recorded.package if recorded is not None else None)
    saved_inputs = recorded.inputs if recorded is not None else None
    packages = used_packages(watched.seen, output=outcome.stderr_tail + outcome.stdout_tail, package=package)
    session, found, interrupted = examine_packages(
        packages,
        watched,
        inputs=request.inputs or request.checked_inputs or saved_inputs,
        live=request.live,
        options=request.options,
        environ=environ,
        may_run=request.inputs is not None or failing,
        as_in=outcome if failing else None,
        on_event=on_event,
    )
    session.runs.insert(0, outcome)
    session.add(watched_program.read(session.case, History(), outcome))
    outputs = [add_output_findings(session, one) for one in read_output(watched)]
    # The reading with the most matches, stderr before stdout.
    readings = (one.reading for one in outputs)
    main = max(readings, key=lambda one: (len(one.matches), len(one.events)), default=None)
    chain = blame_input(session, outcome)
    _add_native_stack(session, outcome)
    reasons = [("output", reason) for reason in unread_output(watched)]
    if watched.no_core and outcome.error is None and isinstance(watched.ending, Signalled):
        reasons.append(("core", watched.no_core))
    if request.again is None and not succeeded(outcome) and request.no_again:
        reasons.append(("rerun", request.no_again))
    session.not_checked += [NotChecked(code=CODE, name=name, reason=reason) for name, reason in reasons]
    failed = not succeeded(outcome)
    try:
        if failed and not interrupted and request.again is not None:
            settled = _SETTLED if any(one.status is Status.CONFIRMED for one in found) else ""
            outputs += _rerun(
                session,
                watched,
                outcome,
                request,
                again=request.again,
                environ=environ,
                recorded=recorded,
                settled=settled,
            )
    except KeyboardInterrupt:
        interrupted = True
    # Causes that a triage confirmed stay; those found since join them.
    known = {one.cause for one in found}
    causes = (*found, *(one for one in name_causes(session) if one.cause not in known))
    named = with_blame([one for text in outputs for one in text.diagnoses], chain)
    diagnoses = merge_causes(causes, named, session.findings)
    if not failed:
        sure = (one for one in diagnoses if not is_lead(one, session.findings))
        diagnoses = tuple(replace(one, rank=rank) for rank, one in enumerate(sure, start=1))
    is_named = diagnoses and not is_lead(diagnoses[0], session.findings)
    # By probe; the backtrace is that of the run that a debugger saw.
    backtraces = [("backtrace", one) for one in session.runs if one.debugger_output]
    outcomes = dict(backtraces[:1]) | session.outcomes
    return finish(
        session,
        diagnoses,
        invocation,
        verdict="problem" if is_named else "unknown" if failed else "healthy",
        seconds=watched.seconds + invocation.seconds(),
        interrupted=interrupted,
        localization=localize(session.case, session.findings, outcomes, failed=failed),
        log=main,
        extra=program_facts(watched, packages),
    )


def _add_native_stack(session: Session, outcome: Outcome) -> None:
    """Add the native stack as a finding: an error for a death in a package, not for an uncaught exception."""
    if not outcome.debugger_output and outcome.debugger_problem is None:
        return
    trace = read_backtrace(outcome.debugger_output)
    frames = (*(trace.stop.frames if trace.stop is not None else ()), *(f for t in trace.threads for f in t.frames))
    inside = any(word in f"{frame.function}{frame.library}" for frame in frames for word in _MODEL)
    proper = inside and outcome.error is None
    for item in backtrace.read(session.case, History(), outcome):
        session.add([item if proper else replace(item, severity=Severity.INFO)])


def _words(outcome: Outcome) -> tuple[str, ...]:
    """The output of a run without the stack, whose addresses change from run to run."""
    error = outcome.error
    if error is None:
        return (outcome.stderr_tail, outcome.stdout_tail)
    return (error.type, error.message.partition("\n")[0])


def _record_inputs(
    watched: WatchedProgram,
    outcome: Outcome,
    request: WatchRequest,
    environ: Mapping[str, str],
    on_event: OnEvent | None,
) -> RecordedCall | None:
    """Run the program again to record the inputs of its failing call, if no inputs were given."""
    has_inputs = request.inputs is not None or request.checked_inputs is not None or request.live is not None
    if request.again is None or request.room is None or has_inputs or succeeded(outcome):
        return None
    notify = on_event or (lambda _event: None)
    notify(Event(kind=EventKind.PROBE_START, name=_RECORDING))
    recorded = record_call(
        watched, outcome, request.again, request.room, environ, limit=request.limit, has_gdb=request.has_gdb
    )
    notify(Event(kind=EventKind.PROBE_END, name=_RECORDING, seconds=recorded.outcome.seconds))
    return recorded


def _rerun(
    session: Session,
    watched: WatchedProgram,
    outcome: Outcome,
    request: WatchRequest,
    *,
    again: RunAgain,
    environ: Mapping[str, str],
    recorded: RecordedCall | None,
    settled: str,
) -> list[ClassifiedOutput]:
    """Run the probes with other settings, and classify their output."""
    second = (recorded.watched, recorded.outcome) if recorded is not None else None
    if recorded is not None and recorded.problem:
        session.not_checked.append(NotChecked(code=CODE, name="recorded call", reason=recorded.problem))
    first = FirstRun(
        watched=watched, outcome=outcome, case=session.case, environ=environ, second=second, settled=settled
    )
    results = run_repeats(first, again, limit=request.limit, has_gdb=request.has_gdb, on_event=session.on_event)
    # The second run came before any examination of its call.
    done = 1 if second is not None else 0
    session.runs[1:1] = results.outcomes[:done]
    session.runs += results.outcomes[done:]
    session.not_checked += results.not_checked
    session.add(results.findings)
    for repeated in results.outcomes:
        if repeated.debugger_output or repeated.debugger_problem:
            _add_native_stack(session, repeated)
    complained = any(item.code == "AD-RUN-003" for item in results.findings)
    outputs = [
        output
        for program, repeated in zip(results.watched, results.outcomes, strict=True)
        # The complaint of the input checks is a finding already.
        if _words(repeated) != _words(outcome) and not (complained and repeated.request.probe == "check_inputs")
        for output in read_output(program, run=repeated.id)
    ]
    return [add_output_findings(session, one) for one in outputs]
