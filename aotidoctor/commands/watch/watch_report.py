"""``aotidoctor watch``: report on a program that failed, from its packages, its output and its end.

what was seen ─► packages ─► case ─► static checks (with --inputs: triage as in ``run``) ──┐
how it ended ─► outcome ─► findings (core, stack) ─► --rerun: the probes of the environment ─┼─► one ranking ─► report
what it printed ─► classification ──────────────────────────────────────────────────────────┘

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
    Repeat,
    outcome_of,
    output_streams,
    unread_output,
    with_named_packages,
)
from aotidoctor.commands.watch.used_packages import examine_packages, program_facts, used_packages
from aotidoctor.diagnosis.playbooks import find_playbook
from aotidoctor.localize.culprit import localize
from aotidoctor.localize.debugger_output import read_backtrace
from aotidoctor.logs.diagnose_log import log_diagnoses, log_findings
from aotidoctor.logs.log_reading import read_log
from aotidoctor.logs.log_with_package import CHECKED, in_users_words
from aotidoctor.model.case import Options
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.model.report import Diagnosis, Event, EventKind, LogReading, OnEvent, Report, Status
from aotidoctor.model.run import Outcome, Signalled, WatchedProgram
from aotidoctor.probes import backtrace, blame, plain_run, watched_program
from aotidoctor.probes.probe import History, succeeded
from aotidoctor.triage.finish import Invocation, finish
from aotidoctor.triage.static_checks import Session, name_causes

if TYPE_CHECKING:
    from aotidoctor.commands.watch.program_outcome import RecordedCall, RunAgain
    from aotidoctor.model.inputs import InputSet


# The output, classified stream by stream.


@record
class ClassifiedOutput:
    """One text: findings, the reading itself, and, once it is taken into a report, the causes it names."""

    evidence: tuple[Evidence, ...]
    reading: LogReading
    diagnoses: tuple[Diagnosis, ...] = ()


def read_output(watched: WatchedProgram, *, run: str = "") -> tuple[ClassifiedOutput, ...]:
    """What each stream says; ``run`` goes before the names of the streams of a rerun."""
    prefix = f"{run} " if run else ""
    found = []
    for stream in output_streams(watched):
        reading = read_log(BytesIO(stream.text), f"{prefix}{stream.name}")
        found.append(ClassifiedOutput(evidence=tuple(log_findings(reading)), reading=reading))
    return tuple(found)


def add_output_findings(session: Session, said: ClassifiedOutput) -> ClassifiedOutput:
    """Add the evidence to what is known, in the words of the package; the same as it is known there."""
    evidence = said.evidence
    if session.case.contract is not None:
        named, _ = in_users_words(session.case, said.reading, evidence)
        evidence = tuple(named)
    known = len(session.findings)
    session.add(evidence)
    added = tuple(session.findings[known:])
    return replace(said, evidence=added, diagnoses=log_diagnoses(added))


def main_log_reading(said: Sequence[ClassifiedOutput]) -> LogReading | None:
    """The reading that a report shows: the one that recognises most, errors' stream first."""
    return max(
        (one.reading for one in said), key=lambda reading: (len(reading.matches), len(reading.events)), default=None
    )


def blame_input(session: Session, outcome: Outcome) -> Evidence | None:
    """Add the chain to what is known, where the words of the program begin one; the evidence with its id."""
    if outcome.error is None or session.case.contract is None:
        return None
    # The probe reads the end of a run that calls the package, which this program has done itself.
    ended = plain_run.read_ending(plain_run.CODE, session.case, replace(outcome, stage="run1"))
    known = len(session.findings)
    session.add(blame.read(session.case, History(findings=(ended,)), outcome))
    return next(iter(session.findings[known:]), None)


def with_blame(said: Sequence[Diagnosis], chain: Evidence | None) -> list[Diagnosis]:
    """The causes that the words name, with the input that the chain leads to."""
    if chain is None:
        return list(said)
    return [
        replace(one, subject=one.subject or chain.subject, evidence=(*one.evidence, chain.id))
        if one.cause in CHECKED
        else one
        for one in said
    ]


# One ranking.

# A comparison with what the program itself handed over, or the native stack of its death.
_OF_THIS_FAILURE = ("AD-IN-", "AD-RUN-")
_SURE = 0.8
_GROUPS = {"load": "@load", "host": "@load", "artifact": "@load", "run": "@run", "inputs": "@run", "output": "@output"}


def merge_causes(
    found: Sequence[Diagnosis], said: Sequence[Diagnosis], findings: Sequence[Evidence]
) -> tuple[Diagnosis, ...]:
    """``found`` are causes from the files and from runs, ``said`` those that the output names; both ranked."""
    codes = {item.id: item.code for item in findings}
    left = _distinct(said)
    kept: list[Diagnosis] = []
    for cause in found:
        if cause.severity is not Severity.ERROR:
            continue
        dynamic = _is_of_this_failure(cause, codes)
        gone = [one for one in left if one.cause == cause.cause or _explains(cause, one, dynamic=dynamic)]
        left = [one for one in left if one not in gone]
        if dynamic or gone:
            seen = gone[0].looked_like if gone else cause.looked_like
            kept.append(replace(_join_causes(cause, gone), looked_like=seen))
    left = [_join_causes(one, [other for other in found if other.cause == one.cause]) for one in left]
    named = {one.cause for one in (*kept, *left)}
    others = [one for one in found if one.cause not in named]
    return tuple(replace(one, rank=rank) for rank, one in enumerate((*kept, *left, *others), start=1))


def _is_of_this_failure(diagnosis: Diagnosis, codes: dict[str, str]) -> bool:
    return any(codes.get(name, "").startswith(_OF_THIS_FAILURE) for name in diagnosis.evidence)


def _distinct(said: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Each cause once, though several streams, or runs, name it."""
    first: dict[str, Diagnosis] = {}
    for one in said:
        first[one.cause] = _join_causes(first[one.cause], [one]) if one.cause in first else one
    return list(first.values())


def _explains(cause: Diagnosis, symptom: Diagnosis, *, dynamic: bool) -> bool:
    """What the files alone show does not outweigh words that name another cause for sure."""
    playbook = find_playbook(cause.playbook)
    if playbook is None:
        return False
    by_group = dynamic or symptom.confidence < _SURE
    return symptom.cause in playbook.explains or (by_group and _GROUPS.get(symptom.stage, "") in playbook.explains)


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
# Frames of these mean that the program was inside of a package.
_MODEL = ("AOTInductor", "/data/aotinductor/")


@record
class WatchRequest:
    """What the user asks for.

    ``inputs`` are for a triage, ``checked_inputs`` for a comparison only; ``live`` are inputs that exist as objects.
    ``package`` is examined whatever was seen. ``again`` runs the command
    once more, None where that was not asked for (``no_again`` says how it would be); ``limit`` is the time of each
    such run. ``has_gdb`` says whether a debugger can be had.
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
    wish: WatchRequest,
    *,
    argv: tuple[str, ...],
    environ: Mapping[str, str],
    on_event: OnEvent | None = None,
) -> Report:
    """The report on a program that has ended."""
    watched = with_named_packages(watched)
    watch = Invocation(wish.command, argv, began=watched.started)
    outcome = outcome_of(watched, Repeat())
    recorded = _record_inputs(watched, outcome, wish, environ, on_event)
    failing = recorded is not None and recorded.is_failing
    called = recorded.package if recorded is not None else None
    kept = recorded.inputs if recorded is not None else None
    packages = used_packages(watched.seen, said=outcome.stderr_tail + outcome.stdout_tail, asked=wish.package or called)
    session, found, interrupted = examine_packages(
        packages,
        watched,
        inputs=wish.inputs or wish.checked_inputs or kept,
        live=wish.live,
        options=wish.options,
        environ=environ,
        may_run=wish.inputs is not None or failing,
        as_in=outcome if failing else None,
        tell=on_event,
    )
    session.runs.insert(0, outcome)
    session.add(watched_program.read(session.case, History(), outcome))
    said = [add_output_findings(session, one) for one in read_output(watched)]
    main, chain = main_log_reading(said), blame_input(session, outcome)
    _native(session, outcome)
    _not_examined(session, watched, outcome, wish)
    try:
        if not succeeded(outcome) and not interrupted:
            settled = _SETTLED if any(one.status is Status.CONFIRMED for one in found) else ""
            said += _rerun(session, watched, outcome, wish, environ, recorded=recorded, settled=settled)
    except KeyboardInterrupt:
        interrupted = True
    causes = _with_new(found, name_causes(session))
    named = with_blame([one for text in said for one in text.diagnoses], chain)
    diagnoses = merge_causes(causes, named, session.findings)
    failed = not succeeded(outcome)
    return finish(
        session,
        diagnoses,
        watch,
        verdict="problem" if diagnoses else "unknown" if failed else "healthy",
        seconds=watched.seconds + watch.seconds(),
        interrupted=interrupted,
        localization=localize(session.case, session.findings, _outcomes(session), failed=failed),
        log=main,
        extra=program_facts(watched, packages),
    )


def _with_new(found: tuple[Diagnosis, ...], named: tuple[Diagnosis, ...]) -> tuple[Diagnosis, ...]:
    """What a triage confirmed stays; what was found since joins it."""
    known = {one.cause for one in found}
    return (*found, *(one for one in named if one.cause not in known))


def _outcomes(session: Session) -> dict[str, Outcome]:
    """By probe; the one with a native stack is the one that a debugger saw."""
    stacked = next((one for one in session.runs if one.debugger_output), None)
    return {**({"backtrace": stacked} if stacked is not None else {}), **session.outcomes}


def _native(session: Session, outcome: Outcome) -> None:
    """The native stack as a finding: of a death in a package only, not of an exception that nobody caught."""
    if not outcome.debugger_output and outcome.debugger_problem is None:
        return
    trace = read_backtrace(outcome.debugger_output)
    frames = (*(trace.stop.frames if trace.stop is not None else ()), *(f for t in trace.threads for f in t.frames))
    inside = any(word in f"{frame.function}{frame.library}" for frame in frames for word in _MODEL)
    proper = inside and outcome.error is None
    for item in backtrace.read(session.case, History(), outcome):
        session.add([item if proper else replace(item, severity=Severity.INFO)])


def _not_examined(session: Session, watched: WatchedProgram, outcome: Outcome, wish: WatchRequest) -> None:
    """What could have been looked at, and was not."""
    reasons = [("output", reason) for reason in unread_output(watched)]
    if watched.no_core and outcome.error is None and isinstance(watched.ending, Signalled):
        reasons.append(("core", watched.no_core))
    if wish.again is None and not succeeded(outcome) and wish.no_again:
        reasons.append(("rerun", wish.no_again))
    session.not_checked += [NotChecked(code=CODE, name=name, reason=reason) for name, reason in reasons]


def _words(outcome: Outcome) -> tuple[str, ...]:
    """What a run says, without the stack: its addresses are others each time."""
    error = outcome.error
    if error is None:
        return (outcome.stderr_tail, outcome.stdout_tail)
    return (error.type, error.message.partition("\n")[0])


def _record_inputs(
    watched: WatchedProgram, outcome: Outcome, wish: WatchRequest, environ: Mapping[str, str], tell: OnEvent | None
) -> RecordedCall | None:
    """The second run, where it may tell the inputs that nobody gave."""
    has_inputs = wish.inputs is not None or wish.checked_inputs is not None or wish.live is not None
    if wish.again is None or wish.room is None or has_inputs or succeeded(outcome):
        return None
    # With --rerun only.
    from aotidoctor.commands.watch.program_outcome import record_call

    tell = tell or (lambda _event: None)
    tell(Event(kind=EventKind.PROBE_START, name=_RECORDING))
    recorded = record_call(watched, outcome, wish.again, wish.room, environ, limit=wish.limit, has_gdb=wish.has_gdb)
    tell(Event(kind=EventKind.PROBE_END, name=_RECORDING, seconds=recorded.outcome.seconds))
    return recorded


def _rerun(
    session: Session,
    watched: WatchedProgram,
    outcome: Outcome,
    wish: WatchRequest,
    environ: Mapping[str, str],
    *,
    recorded: RecordedCall | None,
    settled: str,
) -> list[ClassifiedOutput]:
    """The probes of the environment; what they print is classified, too."""
    if wish.again is None:
        return []
    # Not needed, and not worth its import, where nothing is run again.
    from aotidoctor.commands.watch import program_outcome

    second = (recorded.watched, recorded.outcome) if recorded is not None else None
    if recorded is not None and recorded.problem:
        session.not_checked.append(NotChecked(code=CODE, name="recorded call", reason=recorded.problem))
    first = program_outcome.FirstRun(
        watched=watched, outcome=outcome, case=session.case, environ=environ, second=second, settled=settled
    )
    climbed = program_outcome.run_repeats(
        first, wish.again, limit=wish.limit, has_gdb=wish.has_gdb, tell=session.on_event
    )
    # The second run came before any examination of its call.
    done = 1 if second is not None else 0
    session.runs[1:1] = climbed.outcomes[:done]
    session.runs += climbed.outcomes[done:]
    session.not_checked += climbed.not_checked
    session.add(climbed.findings)
    for again in climbed.outcomes:
        if again.debugger_output or again.debugger_problem:
            _native(session, again)
    complained = any(item.code == "AD-RUN-003" for item in climbed.findings)
    texts = [
        said
        for seen, again in zip(climbed.watched, climbed.outcomes, strict=True)
        # What the checks say is a finding of its own, and better told there.
        if _words(again) != _words(outcome) and not (complained and again.request.probe == "check_inputs")
        for said in read_output(seen, run=again.id)
    ]
    return [add_output_findings(session, one) for one in texts]
