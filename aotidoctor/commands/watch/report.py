"""``aotidoctor watch``: what is made of a program's failure, in one report of the usual kind.

what was seen ─► packages ─► case ─► static checks (with --inputs: triage as in ``run``) ──┐
how it ended ─► outcome ─► findings (core, stack) ─► --rerun: the probes of the environment ─┼─► one ranking ─► report
what it printed ─► classification ──────────────────────────────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from aotidoctor.commands.watch.case import examine_packages
from aotidoctor.commands.watch.causes import merged
from aotidoctor.commands.watch.facts import extra_of
from aotidoctor.commands.watch.outcome import Repeat, outcome_of, unread, with_said
from aotidoctor.commands.watch.packages import used_packages
from aotidoctor.commands.watch.printed import Said, blame_input, main_reading, read_output, take, with_blame
from aotidoctor.localize.assemble import localization
from aotidoctor.localize.backtrace import read_backtrace
from aotidoctor.model.case import Options
from aotidoctor.model.diagnosis import Diagnosis, Status
from aotidoctor.model.event import Event, EventKind, OnEvent
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.model.run import Outcome, Signalled
from aotidoctor.model.watched import Watched
from aotidoctor.probes import backtrace, watched_program
from aotidoctor.probes.probe import History, succeeded
from aotidoctor.triage.finish import Stopwatch, finish
from aotidoctor.triage.session import Session, name_causes

if TYPE_CHECKING:
    from aotidoctor.commands.watch.recorded import Recorded
    from aotidoctor.commands.watch.repeats import Again
    from aotidoctor.model.inputs import InputSet

CODE = watched_program.CODE
RERUN = "--rerun runs the command again under diagnostic settings"
_RECORDING = "again, unchanged, with the calls of the package recorded"
_SETTLED = "the recorded call failed by itself, and a treatment of it confirmed the cause"
# Frames of these mean that the program was inside of a package.
_MODEL = ("AOTInductor", "/data/aotinductor/")


@record
class Wish:
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
    again: Again | None = None
    no_again: str = RERUN
    limit: float = 60.0
    has_gdb: bool = False
    room: str | None = None
    options: Options = field(default_factory=Options)
    command: str = "watch"


def report_on(
    watched: Watched,
    wish: Wish,
    *,
    argv: tuple[str, ...],
    environ: Mapping[str, str],
    on_event: OnEvent | None = None,
) -> Report:
    """The report on a program that has ended."""
    watched = with_said(watched)
    watch = Stopwatch(wish.command, argv, began=watched.started)
    outcome = outcome_of(watched, Repeat())
    recorded = _recorded(watched, outcome, wish, environ, on_event)
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
    said = [take(session, one) for one in read_output(watched)]
    main, chain = main_reading(said), blame_input(session, outcome)
    _native(session, outcome)
    _not_seen(session, watched, outcome, wish)
    try:
        if not succeeded(outcome) and not interrupted:
            settled = _SETTLED if any(one.status is Status.CONFIRMED for one in found) else ""
            said += _rerun(session, watched, outcome, wish, environ, recorded=recorded, settled=settled)
    except KeyboardInterrupt:
        interrupted = True
    causes = _with_new(found, name_causes(session))
    named = with_blame([one for text in said for one in text.diagnoses], chain)
    diagnoses = merged(causes, named, session.findings)
    failed = not succeeded(outcome)
    return finish(
        session,
        diagnoses,
        watch,
        verdict="problem" if diagnoses else "unknown" if failed else "healthy",
        seconds=watched.seconds + watch.seconds(),
        interrupted=interrupted,
        localization=localization(session.case, session.findings, _outcomes(session), failed=failed),
        log=main,
        extra=extra_of(watched, packages),
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


def _not_seen(session: Session, watched: Watched, outcome: Outcome, wish: Wish) -> None:
    """What could have been looked at, and was not."""
    reasons = [("output", reason) for reason in unread(watched)]
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


def _recorded(
    watched: Watched, outcome: Outcome, wish: Wish, environ: Mapping[str, str], tell: OnEvent | None
) -> Recorded | None:
    """The second run, where it may tell the inputs that nobody gave."""
    has_inputs = wish.inputs is not None or wish.checked_inputs is not None or wish.live is not None
    if wish.again is None or wish.room is None or has_inputs or succeeded(outcome):
        return None
    # With --rerun only.
    from aotidoctor.commands.watch.recorded import record  # noqa: PLC0415

    tell = tell or (lambda _event: None)
    tell(Event(kind=EventKind.PROBE_START, name=_RECORDING))
    recorded = record(watched, outcome, wish.again, wish.room, environ, limit=wish.limit, has_gdb=wish.has_gdb)
    tell(Event(kind=EventKind.PROBE_END, name=_RECORDING, seconds=recorded.outcome.seconds))
    return recorded


def _rerun(
    session: Session,
    watched: Watched,
    outcome: Outcome,
    wish: Wish,
    environ: Mapping[str, str],
    *,
    recorded: Recorded | None,
    settled: str,
) -> list[Said]:
    """The probes of the environment; what they print is classified, too."""
    if wish.again is None:
        return []
    # Not needed, and not worth its import, where nothing is run again.
    from aotidoctor.commands.watch import repeats  # noqa: PLC0415

    second = (recorded.watched, recorded.outcome) if recorded is not None else None
    if recorded is not None and recorded.problem:
        session.not_checked.append(NotChecked(code=CODE, name="recorded call", reason=recorded.problem))
    first = repeats.First(
        watched=watched, outcome=outcome, case=session.case, environ=environ, second=second, settled=settled
    )
    climbed = repeats.session(first, wish.again, limit=wish.limit, has_gdb=wish.has_gdb, tell=session.on_event)
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
    return [take(session, one) for one in texts]
