"""Turn a watched program into the outcome of a run, run it again under other settings, and record its failing call.

Each rerun answers one question: does it fail again (under a debugger where it died of a signal), what do the package's
own input checks say, what does C++ say of its stack, does it fail where with blocking launches, and without the caching
allocator? A run is made only where its answer can be new; once the input checks have named a fault, no more.

The recording is a second run of a Python program that saves the arguments of its calls, so that the failure can be
examined outside of the program, as ``run`` does. It is also the probe "again, unchanged". Other programs, and calls by
other ways than what ``aoti_load_package`` returns, leave no recording, which is reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.jobs import Job
from aotidoctor.model.record import record
from aotidoctor.model.report import Event, EventKind, OnEvent
from aotidoctor.model.run import (
    ChildError,
    Exited,
    NotStarted,
    Outcome,
    ProgramToWatch,
    Request,
    Signalled,
    Stream,
    StreamKind,
    WatchedProgram,
)
from aotidoctor.probes import check_inputs, failure_rates
from aotidoctor.probes.probe import History, succeeded
from aotidoctor.probes.settings_took_effect import with_effect
from aotidoctor.probes.symptoms import recognise
from aotidoctor.probes.watched_program import CODE, NAME, raised_in
from aotidoctor.worker.recorder import sitecustomize

TAIL = 16 * 1024
# Of a text that is looked into for the exception: the last words.
_LOOKED_INTO = 256 * 1024
_UNPACKED = re.compile(
    rb"(?<![\w./-])(/[^\s()\"']{0,300}/aotinductor_\w{6}/[^\s()\"']{0,100}data/aotinductor/[^/\s()\"']{1,200})"
    rb"/[^/\s()\"']{1,200}\.so\b"
)


@record
class Repeat:
    """Which run it was: ``name`` of the probe, what it was for, what was changed, and the id that the report gives."""

    name: str = NAME
    id: str = "W1"
    purpose: str = "the program as it was started"
    env: Mapping[str, str | None] | None = None


def outcome_of(watched: WatchedProgram, repeat: Repeat, *, timeout: float = 0.0) -> Outcome:
    """The outcome."""
    streams = {stream.name: stream for stream in watched.streams}
    errors = streams.get("stderr") or streams.get("output")
    output = streams.get("stdout")
    said = _tail(errors, _LOOKED_INTO) + ("\n" + _tail(output, _LOOKED_INTO) if output is not None else "")
    error = raised_in(_tail(errors, _LOOKED_INTO)) or raised_in(said)
    failed = watched.status != 0 and not isinstance(watched.ending, NotStarted)
    request = Request(
        probe=repeat.name, job="watch", payload=Job(), env=repeat.env or {}, timeout=timeout, purpose=repeat.purpose
    )
    # An exception that nobody caught ends a program by an exit status or by abort, and by no other signal.
    return Outcome(
        id=repeat.id,
        request=request,
        ending=watched.ending,
        stage=stage_of(watched),
        error=error
        if failed and (not isinstance(watched.ending, Signalled) or watched.ending.name == "SIGABRT")
        else None,
        stdout_tail=_tail(output, TAIL),
        stderr_tail=_tail(errors, TAIL),
        stdout_bytes=output.size if output is not None else 0,
        stderr_bytes=errors.size if errors is not None else 0,
        seconds=watched.seconds,
        argv=watched.argv,
        peak_rss=watched.peak_rss,
        debugger_output=watched.debugger_output,
        debugger_problem=watched.debugger_problem,
    )


def stage_of(watched: WatchedProgram) -> str:
    """How far it came, as far as that shows from outside: was code of a package mapped, a package open or unpacked?"""
    if watched.seen.unpacked:
        return "run1"
    return "load" if watched.seen.opened or watched.seen.left else "start"


def with_named_packages(watched: WatchedProgram) -> WatchedProgram:
    """With the folders of packages that the output names: a stack of C++ tells where the code was."""
    said = dict.fromkeys(
        found[1].decode("utf-8", "replace") for stream in watched.streams for found in _UNPACKED.finditer(stream.text)
    )
    unpacked = tuple(dict.fromkeys((*watched.seen.unpacked, *said)))
    return replace(watched, seen=replace(watched.seen, unpacked=unpacked))


def output_streams(watched: WatchedProgram) -> tuple[Stream, ...]:
    """The streams with something in them, stderr first: errors are there, as a rule."""
    order = {"stderr": 0, "output": 1, "stdout": 2}
    return tuple(sorted((one for one in watched.streams if one.size), key=lambda one: order[one.name]))


def unread_output(watched: WatchedProgram) -> tuple[str, ...]:
    """What of the output could not be read, or was not kept, in words."""
    found = [one.problem for one in watched.streams if one.problem and one.kind is not StreamKind.CLOSED]
    found += [
        f"{one.name}: {one.left_out:,} of {one.size:,} bytes were not kept (the first {len(one.head):,} and the last "
        f"{len(one.tail):,} were)"
        for one in watched.streams
        if one.left_out
    ]
    return tuple(found)


def _tail(stream: Stream | None, size: int) -> str:
    if stream is None:
        return ""
    data = stream.tail if len(stream.tail) >= size else stream.text
    return data[-size:].decode("utf-8", "replace")


# Reruns under other settings.

RunAgain = Callable[[ProgramToWatch, bool], WatchedProgram]
CHECKS = "AOTI_RUNTIME_CHECK_INPUTS"
STACKS = "TORCH_SHOW_CPP_STACKTRACES"
BLOCKING = "CUDA_LAUNCH_BLOCKING"
UNCACHED = "PYTORCH_NO_CUDA_MEMORY_CACHING"
# Sizes at which the checks refuse what does no harm.
_SMALL_BATCH = ("0", "1")
_SILENT = ("frame #", "Exception raised from")


@dataclass(slots=True, kw_only=True)
class RepeatResults:
    """What the runs gave."""

    outcomes: list[Outcome] = field(default_factory=list)
    watched: list[WatchedProgram] = field(default_factory=list)
    findings: list[Evidence] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)


@record
class FirstRun:
    """The first run: what was watched, its outcome, the case of its package, and what the environment set already.

    ``second`` is what ran again unchanged meanwhile. ``settled`` says why nothing more needs to be asked.
    """

    watched: WatchedProgram
    outcome: Outcome
    case: Case
    environ: Mapping[str, str]
    second: tuple[WatchedProgram, Outcome] | None = None
    settled: str = ""

    def as_plain(self) -> Outcome:
        """The outcome under the name that the table of probes has for a run with nothing changed."""
        return replace(self.outcome, request=replace(self.outcome.request, probe=failure_rates.PLAIN))


def run_repeats(first: FirstRun, again: RunAgain, *, limit: float, has_gdb: bool, tell: OnEvent) -> RepeatResults:
    """Run the probes in order."""
    climbed = RepeatResults()
    if first.second is not None:
        _keep(first, *first.second, climbed)
    for repeat in _repeats(first, has_gdb=has_gdb):
        if reason := _settled_reason(first, climbed):
            climbed.not_checked.append(NotChecked(code=CODE, name=f"rerun: {repeat.name}", reason=reason))
            continue
        name = f"{repeat.name}: {repeat.purpose}"
        tell(Event(kind=EventKind.PROBE_START, name=name))
        outcome = _run_repeat(first, repeat, again, limit, climbed)
        tell(Event(kind=EventKind.PROBE_END, name=name, seconds=outcome.seconds, verdict=outcome.stage))
    table = _table(first, climbed)
    climbed.findings += [] if table is None else [table]
    return climbed


def _settled_reason(first: FirstRun, climbed: RepeatResults) -> str:
    """Why no further run is worth its time, empty while one is."""
    if any(item.code == check_inputs.CODE and item.severity is Severity.ERROR for item in climbed.findings):
        return "the input checks named the fault already"
    return first.settled


def _run_repeat(first: FirstRun, repeat: Repeat, again: RunAgain, limit: float, climbed: RepeatResults) -> Outcome:
    env = {key: value for key, value in (repeat.env or {}).items() if value is not None}
    program = ProgramToWatch(argv=first.watched.argv, env=env, limit=limit)
    watched = with_named_packages(again(program, repeat.name == "again_under_gdb"))
    repeat = replace(repeat, id=f"W{len(climbed.outcomes) + 2}")
    outcome = _keep(first, watched, outcome_of(watched, repeat, timeout=limit), climbed)
    if repeat.name == "check_inputs":
        climbed.findings += _complaint(first.case, outcome)
    return outcome


def _keep(first: FirstRun, watched: WatchedProgram, outcome: Outcome, climbed: RepeatResults) -> Outcome:
    outcome = with_effect(first.case, _with_complaint(outcome))
    climbed.watched.append(watched)
    climbed.outcomes.append(outcome)
    return outcome


def first_repeat(watched: WatchedProgram, outcome: Outcome, *, has_gdb: bool) -> Repeat:
    """Once more as it was, under a debugger where a death without a word could not be looked at yet."""
    # An exception that nobody caught has told of itself.
    silent = isinstance(outcome.ending, Signalled) and outcome.error is None
    if silent and not watched.debugger_output and has_gdb:
        return Repeat(name="again_under_gdb", purpose="once more, under a debugger")
    return Repeat(name="again", purpose="again, unchanged")


def _repeats(first: FirstRun, *, has_gdb: bool) -> Sequence[Repeat]:
    """Those whose answer can be new."""
    wanted = [] if first.second is not None else [first_repeat(first.watched, first.outcome, has_gdb=has_gdb)]
    if not _set(first.environ, CHECKS) and check_inputs.checks_compiled_in(first.case) is not False:
        wanted.append(Repeat(name="check_inputs", purpose="the package's own input checks", env={CHECKS: "1"}))
    error = first.outcome.error
    if error is not None and not any(word in first.outcome.stderr_tail for word in _SILENT):
        wanted.append(Repeat(name="cpp_stack", purpose="stacks of C++ with exceptions", env={STACKS: "1"}))
    if first.case.contract is not None and first.case.contract.needs.device_type == "cuda":
        wanted += [
            Repeat(name="cuda_blocking", purpose="with blocking launches", env={BLOCKING: "1"}),
            Repeat(
                name="cuda_no_caching",
                purpose="each block of memory allocated separately, with blocking launches",
                env={BLOCKING: "1", UNCACHED: "1"},
            ),
        ]
    return wanted


def _set(environ: Mapping[str, str], name: str) -> bool:
    """Only a value that begins with a zero switches the checks off."""
    return not environ.get(name, "0").startswith("0")


def _with_complaint(outcome: Outcome) -> Outcome:
    """A program may catch what the checks raise, log it and go on: their words are theirs all the same."""
    if outcome.error is not None and recognise(outcome.error.message).name.startswith("check-"):
        return replace(outcome, stage="run1")
    said = recognise(f"{outcome.stderr_tail}\n{outcome.stdout_tail}")
    if not said.name.startswith("check-"):
        return outcome
    return replace(outcome, stage="run1", error=ChildError(type="std::runtime_error", message=said.line))


def _complaint(case: Case, outcome: Outcome) -> list[Evidence]:
    """What the checks say, in the words of the probe that asks them."""
    if succeeded(outcome) and outcome.stage == "run1":
        return list(check_inputs.read(case, History(), outcome))
    if outcome.error is None or not recognise(outcome.error.message).name.startswith("check-"):
        return []
    raised = replace(outcome, ending=Exited(code=1, done=True))
    found = check_inputs.read(case, History(), raised)
    # The checks refuse a batch of 1 below a compiled minimum of 2, which does no harm.
    return [
        item
        if (item.facts.get("symptom") == "check-low" and str(item.facts.get("got")) in _SMALL_BATCH)
        else replace(item, severity=Severity.ERROR)
        for item in found
    ]


def _table(first: FirstRun, climbed: RepeatResults) -> Evidence | None:
    """Probe by probe: how often it failed, and how."""
    outcomes = {failure_rates.PLAIN: first.outcome}
    for outcome in climbed.outcomes:
        name = outcome.request.probe
        outcomes[f"{failure_rates.PLAIN}#2" if name.startswith("again") else name] = outcome
    if len(outcomes) < 2 or all(isinstance(one.ending, NotStarted) for one in climbed.outcomes):
        return None
    found = failure_rates.read(first.case, History(outcomes=outcomes), first.as_plain())
    return next(iter(found), None)


# The recording run.

# The call that did not return says most; of several threads the last.
_STATES = ("raised", "entered", "returned")
_NOTHING = (
    "no call was recorded: the program is not a Python program, or never called the result of aoti_load_package; "
    "pass the inputs with --inputs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """The second run; ``inputs`` is a file of ``torch.save``, or ``problem`` says why there is none.

    ``state``: the call ``raised``, was ``entered`` and never left, or ``returned``. ``package`` is what was called.
    """

    watched: WatchedProgram
    outcome: Outcome
    state: str = ""
    inputs: str | None = None
    package: str | None = None
    problem: str = ""

    @property
    def is_failing(self) -> bool:
        """Whether the call did not return."""
        return self.state in ("raised", "entered")


def record_call(
    watched: WatchedProgram,
    outcome: Outcome,
    again: RunAgain,
    room: str,
    environ: Mapping[str, str],
    *,
    limit: float,
    has_gdb: bool,
) -> RecordedCall:
    """Run it again with the recorder in its path; what is written goes to the folder ``room``."""
    repeat = first_repeat(watched, outcome, has_gdb=has_gdb)
    folder = os.path.dirname(os.path.abspath(sitecustomize.__file__))  # noqa: PTH100, PTH120 - a search path
    path = os.pathsep.join(filter(None, (folder, environ.get("PYTHONPATH"))))
    program = ProgramToWatch(argv=watched.argv, env={"PYTHONPATH": path, sitecustomize.ROOM: room}, limit=limit)
    seen = with_named_packages(again(program, repeat.name == "again_under_gdb"))
    ended = outcome_of(seen, Repeat(name=repeat.name, purpose=repeat.purpose, id="W2"), timeout=limit)
    return _recorded_file(seen, ended, Path(room))


def _recorded_file(watched: WatchedProgram, outcome: Outcome, room: Path) -> RecordedCall:
    for state in _STATES:
        files = sorted(room.glob(f"*.{state}.pt"), key=lambda path: path.stat().st_mtime_ns)
        if files:
            stem = files[-1].name.partition(".")[0]
            package = _text(room / f"{stem}.package")
            is_there = package is not None and Path(package).exists()
            return RecordedCall(
                watched=watched,
                outcome=outcome,
                state=state,
                inputs=str(files[-1]),
                package=package if is_there else None,
            )
    problems = [_text(path) for path in sorted(room.glob("*.problem"))]
    return RecordedCall(watched=watched, outcome=outcome, problem=next(filter(None, problems), _NOTHING))


def _text(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(4096)
    except OSError:
        return None
