"""Turn a watched program into the outcome of a run, run it again under other settings, and record its failing call.

Each rerun answers one question: does it fail again (under a debugger where it died of a signal), what do the package's
own input checks report, what is the C++ stack, where does it fail with blocking launches, and without the caching
allocator? A run is made only where its answer can be new, and none after the input checks have named a fault.

The recording is a second run of a Python program that saves the arguments of its calls, so that the failure can be
examined outside the program, as ``run`` does. It is also the probe "again, unchanged". Other programs, and calls that
do not go through the result of ``aoti_load_package``, leave no recording, which is reported.
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
from aotidoctor.model.torch_names import CHECK_INPUTS, CPP_STACKS, LAUNCH_BLOCKING, NO_CACHING
from aotidoctor.probes import check_inputs, failure_rates
from aotidoctor.probes.probe import History, succeeded
from aotidoctor.probes.symptoms import recognise
from aotidoctor.probes.tool_effects import add_effect
from aotidoctor.probes.watched_program import CODE, NAME, last_exception
from aotidoctor.worker.recorder import sitecustomize

TAIL = 16 * 1024
# Bytes at the end of the output that are searched for the exception.
_SEARCHED = 256 * 1024
_UNPACKED = re.compile(
    rb"(?<![\w./-])(/[^\s()\"']{0,300}/aotinductor_\w{6}/[^\s()\"']{0,100}data/aotinductor/[^/\s()\"']{1,200})"
    rb"/[^/\s()\"']{1,200}\.so\b"
)


@record
class Repeat:
    """One run of the program: the probe's name, its id in the report, its purpose, and the changed variables."""

    name: str = NAME
    id: str = "W1"
    purpose: str = "the program as it was started"
    env: Mapping[str, str | None] | None = None


def outcome_of(watched: WatchedProgram, repeat: Repeat, *, timeout: float = 0.0) -> Outcome:
    """The outcome of a watched program, with the exception that its output names."""
    streams = {stream.name: stream for stream in watched.streams}
    errors = streams.get("stderr") or streams.get("output")
    output = streams.get("stdout")
    text = _tail(errors, _SEARCHED) + ("\n" + _tail(output, _SEARCHED) if output is not None else "")
    error = last_exception(_tail(errors, _SEARCHED)) or last_exception(text)
    failed = watched.status != 0 and not isinstance(watched.ending, NotStarted)
    request = Request(
        probe=repeat.name, job="watch", payload=Job(), env=repeat.env or {}, timeout=timeout, purpose=repeat.purpose
    )
    # An uncaught exception ends a program by an exit status or by abort, and by no other signal.
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
    """The stage that the program reached, judged by its mapped code and its open or unpacked packages."""
    if watched.seen.unpacked:
        return "run1"
    return "load" if watched.seen.opened or watched.seen.left else "start"


def with_named_packages(watched: WatchedProgram) -> WatchedProgram:
    """Add the folders of packages that the output names: a C++ stack says where the code was."""
    named = dict.fromkeys(
        found[1].decode("utf-8", "replace") for stream in watched.streams for found in _UNPACKED.finditer(stream.text)
    )
    unpacked = tuple(dict.fromkeys((*watched.seen.unpacked, *named)))
    return replace(watched, seen=replace(watched.seen, unpacked=unpacked))


def output_streams(watched: WatchedProgram) -> tuple[Stream, ...]:
    """The streams that are not empty, stderr first, which usually holds the errors."""
    order = {"stderr": 0, "output": 1, "stdout": 2}
    return tuple(sorted((one for one in watched.streams if one.size), key=lambda one: order[one.name]))


def unread_output(watched: WatchedProgram) -> tuple[str, ...]:
    """One line for each part of the output that could not be read or was not kept."""
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
# Sizes that the input checks refuse although they do no harm.
_SMALL_BATCH = ("0", "1")
_SILENT = ("frame #", "Exception raised from")


@dataclass(slots=True, kw_only=True)
class RepeatResults:
    """Outcomes, findings and gaps of the reruns."""

    outcomes: list[Outcome] = field(default_factory=list)
    watched: list[WatchedProgram] = field(default_factory=list)
    findings: list[Evidence] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)


@record
class FirstRun:
    """The first run: the program, its outcome, the case of its package, and its environment.

    ``second`` is a run with nothing changed that was made since. ``settled`` says why no further run is needed.
    """

    watched: WatchedProgram
    outcome: Outcome
    case: Case
    environ: Mapping[str, str]
    second: tuple[WatchedProgram, Outcome] | None = None
    settled: str = ""


def run_repeats(first: FirstRun, again: RunAgain, *, limit: float, has_gdb: bool, on_event: OnEvent) -> RepeatResults:
    """Run the program once for each question that is still open."""
    results = RepeatResults()
    if first.second is not None:
        _add_run(first, *first.second, results)
    for repeat in _repeats(first, has_gdb=has_gdb):
        refused = any(item.code == check_inputs.CODE and item.severity is Severity.ERROR for item in results.findings)
        if reason := "the input checks named the fault already" if refused else first.settled:
            results.not_checked.append(NotChecked(code=CODE, name=f"rerun: {repeat.name}", reason=reason))
            continue
        name = f"{repeat.name}: {repeat.purpose}"
        on_event(Event(kind=EventKind.PROBE_START, name=name))
        env = {key: value for key, value in (repeat.env or {}).items() if value is not None}
        program = ProgramToWatch(argv=first.watched.argv, env=env, limit=limit)
        watched = with_named_packages(again(program, repeat.name == "again_under_gdb"))
        numbered = replace(repeat, id=f"W{len(results.outcomes) + 2}")
        outcome = _add_run(first, watched, outcome_of(watched, numbered, timeout=limit), results)
        if repeat.name == "check_inputs":
            results.findings += _complaint(first.case, outcome)
        on_event(Event(kind=EventKind.PROBE_END, name=name, seconds=outcome.seconds, verdict=outcome.stage))
    # How often, and how, the program failed under each setting.
    outcomes = {failure_rates.PLAIN: first.outcome}
    for outcome in results.outcomes:
        name = outcome.request.probe
        outcomes[f"{failure_rates.PLAIN}#2" if name.startswith("again") else name] = outcome
    if len(outcomes) > 1 and not all(isinstance(one.ending, NotStarted) for one in results.outcomes):
        plain = replace(first.outcome, request=replace(first.outcome.request, probe=failure_rates.PLAIN))
        results.findings += list(failure_rates.read(first.case, History(outcomes=outcomes), plain))[:1]
    return results


def _add_run(first: FirstRun, watched: WatchedProgram, outcome: Outcome, results: RepeatResults) -> Outcome:
    # A program may catch the exception of the input checks, log it and go on: the message is theirs all the same.
    if outcome.error is not None and recognise(outcome.error.message).name.startswith("check-"):
        outcome = replace(outcome, stage="run1")
    elif (printed := recognise(f"{outcome.stderr_tail}\n{outcome.stdout_tail}")).name.startswith("check-"):
        error = ChildError(type="std::runtime_error", message=printed.line)
        outcome = replace(outcome, stage="run1", error=error)
    outcome = add_effect(first.case, outcome)
    results.watched.append(watched)
    results.outcomes.append(outcome)
    return outcome


def first_repeat(watched: WatchedProgram, outcome: Outcome, *, has_gdb: bool) -> Repeat:
    """The run with nothing changed, under a debugger where a silent death has no native stack yet."""
    # An uncaught exception has printed itself.
    silent = isinstance(outcome.ending, Signalled) and outcome.error is None
    if silent and not watched.debugger_output and has_gdb:
        return Repeat(name="again_under_gdb", purpose="once more, under a debugger")
    return Repeat(name="again", purpose="again, unchanged")


def _repeats(first: FirstRun, *, has_gdb: bool) -> Sequence[Repeat]:
    """The runs whose answer can be new."""
    repeats = [] if first.second is not None else [first_repeat(first.watched, first.outcome, has_gdb=has_gdb)]
    # Only a value that begins with a zero switches the checks off.
    unchecked = first.environ.get(CHECK_INPUTS, "0").startswith("0")
    if unchecked and check_inputs.checks_compiled_in(first.case) is not False:
        repeats.append(Repeat(name="check_inputs", purpose="the package's own input checks", env={CHECK_INPUTS: "1"}))
    error = first.outcome.error
    if error is not None and not any(word in first.outcome.stderr_tail for word in _SILENT):
        repeats.append(Repeat(name="cpp_stack", purpose="stacks of C++ with exceptions", env={CPP_STACKS: "1"}))
    if first.case.contract is not None and first.case.contract.needs.device_type == "cuda":
        repeats += [
            Repeat(name="cuda_blocking", purpose="with blocking launches", env={LAUNCH_BLOCKING: "1"}),
            Repeat(
                name="cuda_no_caching",
                purpose="each block of memory allocated separately, with blocking launches",
                env={LAUNCH_BLOCKING: "1", NO_CACHING: "1"},
            ),
        ]
    return repeats


def _complaint(case: Case, outcome: Outcome) -> list[Evidence]:
    """The complaint of the input checks, as the probe ``check_inputs`` reports it."""
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


# The recording run. A call that did not return is the most useful; of several threads the last.
_STATES = ("raised", "entered", "returned")
_NOTHING = (
    "no call was recorded: the program is not a Python program, or never called the result of aoti_load_package; "
    "pass the inputs with --inputs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A run with recorded calls; ``inputs`` is a file of ``torch.save``, or ``problem`` says why there is none.

    ``state``: the call ``raised``, was ``entered`` and never left, or ``returned``. ``package`` is the package called.
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
    """Run the program again with the recorder in its path; recordings go to the folder ``room``."""
    repeat = first_repeat(watched, outcome, has_gdb=has_gdb)
    recorder = str(Path(sitecustomize.__file__).absolute().parent)
    path = os.pathsep.join(filter(None, (recorder, environ.get("PYTHONPATH"))))
    program = ProgramToWatch(argv=watched.argv, env={"PYTHONPATH": path, sitecustomize.ROOM: room}, limit=limit)
    seen = with_named_packages(again(program, repeat.name == "again_under_gdb"))
    ended = outcome_of(seen, Repeat(name=repeat.name, purpose=repeat.purpose, id="W2"), timeout=limit)
    folder = Path(room)
    for state in _STATES:
        files = sorted(folder.glob(f"*.{state}.pt"), key=lambda path: path.stat().st_mtime_ns)
        if files:
            stem = files[-1].name.partition(".")[0]
            package = _text(folder / f"{stem}.package")
            exists = package is not None and Path(package).exists()
            return RecordedCall(
                watched=seen, outcome=ended, state=state, inputs=str(files[-1]), package=package if exists else None
            )
    problems = [_text(path) for path in sorted(folder.glob("*.problem"))]
    return RecordedCall(watched=seen, outcome=ended, problem=next(filter(None, problems), _NOTHING))


def _text(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(4096)
    except OSError:
        return None
