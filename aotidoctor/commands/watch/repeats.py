"""The ladder for a program that cannot be called function by function: the same command again, under other settings.

Each run answers one question: does it fail again (under a debugger where it died of a signal), what do the package's
own input checks say, what does C++ say of its stack, does it fail where with blocking launches, and without the
caching allocator? A run is made only where its answer can be new; once the input checks have named a fault, no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.commands.watch.outcome import Repeat, outcome_of, with_said
from aotidoctor.model.case import Case
from aotidoctor.model.event import Event, EventKind, OnEvent
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.model.run import ChildError, Exited, NotStarted, Outcome, Signalled
from aotidoctor.model.watched import Program, Watched
from aotidoctor.probes import check_inputs, rung_table
from aotidoctor.probes.effects import with_effect
from aotidoctor.probes.probe import History, succeeded
from aotidoctor.probes.symptoms import recognise
from aotidoctor.probes.watched_program import CODE

Again = Callable[[Program, bool], Watched]
CHECKS = "AOTI_RUNTIME_CHECK_INPUTS"
STACKS = "TORCH_SHOW_CPP_STACKTRACES"
BLOCKING = "CUDA_LAUNCH_BLOCKING"
UNCACHED = "PYTORCH_NO_CUDA_MEMORY_CACHING"
# Sizes at which the checks refuse what does no harm.
_SMALL_BATCH = ("0", "1")
_SILENT = ("frame #", "Exception raised from")


@dataclass(slots=True, kw_only=True)
class Climbed:
    """What the runs gave."""

    outcomes: list[Outcome] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    findings: list[Evidence] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)


@record
class First:
    """The first run: what was watched, its outcome, the case of its package, and what the environment set already.

    ``second`` is what ran again unchanged meanwhile. ``settled`` says why nothing more needs to be asked.
    """

    watched: Watched
    outcome: Outcome
    case: Case
    environ: Mapping[str, str]
    second: tuple[Watched, Outcome] | None = None
    settled: str = ""

    def as_plain(self) -> Outcome:
        """The outcome under the name that the table of probes has for a run with nothing changed."""
        return replace(self.outcome, request=replace(self.outcome.request, probe=rung_table.PLAIN))


def session(first: First, again: Again, *, limit: float, has_gdb: bool, tell: OnEvent) -> Climbed:
    """Run the probes in order."""
    climbed = Climbed()
    if first.second is not None:
        _keep(first, *first.second, climbed)
    for repeat in _repeats(first, has_gdb=has_gdb):
        if reason := _settled(first, climbed):
            climbed.not_checked.append(NotChecked(code=CODE, name=f"rerun: {repeat.name}", reason=reason))
            continue
        name = f"{repeat.name}: {repeat.purpose}"
        tell(Event(kind=EventKind.PROBE_START, name=name))
        outcome = _run(first, repeat, again, limit, climbed)
        tell(Event(kind=EventKind.PROBE_END, name=name, seconds=outcome.seconds, verdict=outcome.stage))
    table = _table(first, climbed)
    climbed.findings += [] if table is None else [table]
    return climbed


def _settled(first: First, climbed: Climbed) -> str:
    """Why no further run is worth its time, empty while one is."""
    if any(item.code == check_inputs.CODE and item.severity is Severity.ERROR for item in climbed.findings):
        return "the input checks named the fault already"
    return first.settled


def _run(first: First, repeat: Repeat, again: Again, limit: float, climbed: Climbed) -> Outcome:
    env = {key: value for key, value in (repeat.env or {}).items() if value is not None}
    program = Program(argv=first.watched.argv, env=env, limit=limit)
    watched = with_said(again(program, repeat.name == "again_under_gdb"))
    repeat = replace(repeat, id=f"W{len(climbed.outcomes) + 2}")
    outcome = _keep(first, watched, outcome_of(watched, repeat, timeout=limit), climbed)
    if repeat.name == "check_inputs":
        climbed.findings += _complaint(first.case, outcome)
    return outcome


def _keep(first: First, watched: Watched, outcome: Outcome, climbed: Climbed) -> Outcome:
    outcome = with_effect(first.case, _with_complaint(outcome))
    climbed.watched.append(watched)
    climbed.outcomes.append(outcome)
    return outcome


def first_repeat(watched: Watched, outcome: Outcome, *, has_gdb: bool) -> Repeat:
    """Once more as it was, under a debugger where a death without a word could not be looked at yet."""
    # An exception that nobody caught has told of itself.
    silent = isinstance(outcome.ending, Signalled) and outcome.error is None
    if silent and not watched.debugger_output and has_gdb:
        return Repeat(name="again_under_gdb", purpose="once more, under a debugger")
    return Repeat(name="again", purpose="again, unchanged")


def _repeats(first: First, *, has_gdb: bool) -> Sequence[Repeat]:
    """Those whose answer can be new."""
    wanted = [] if first.second is not None else [first_repeat(first.watched, first.outcome, has_gdb=has_gdb)]
    if not _set(first.environ, CHECKS) and check_inputs.checks_compiled_in(first.case) is not False:
        wanted.append(Repeat(name="check_inputs", purpose="the package's own input checks", env={CHECKS: "1"}))
    error = first.outcome.error
    if error is not None and not any(word in first.outcome.stderr_tail for word in _SILENT):
        wanted.append(Repeat(name="cpp_stack", purpose="stacks of C++ with exceptions", env={STACKS: "1"}))
    if _on_cuda(first.case):
        wanted += [
            Repeat(name="cuda_blocking", purpose="with blocking launches", env={BLOCKING: "1"}),
            Repeat(
                name="cuda_no_caching",
                purpose="each block of memory allocated separately, with blocking launches",
                env={BLOCKING: "1", UNCACHED: "1"},
            ),
        ]
    return wanted


def _on_cuda(case: Case) -> bool:
    return case.contract is not None and case.contract.needs.device_type == "cuda"


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
    return [item if _may_be_harmless(item) else replace(item, severity=Severity.ERROR) for item in found]


def _may_be_harmless(item: Evidence) -> bool:
    """The checks refuse a batch of 1 below a compiled minimum of 2, which does no harm."""
    return item.facts.get("symptom") == "check-low" and str(item.facts.get("got")) in _SMALL_BATCH


def _table(first: First, climbed: Climbed) -> Evidence | None:
    """Probe by probe: how often it failed, and how."""
    outcomes = {rung_table.PLAIN: first.outcome}
    for outcome in climbed.outcomes:
        name = outcome.request.probe
        outcomes[f"{rung_table.PLAIN}#2" if name.startswith("again") else name] = outcome
    if len(outcomes) < 2 or all(isinstance(one.ending, NotStarted) for one in climbed.outcomes):
        return None
    found = rung_table.read(first.case, History(outcomes=outcomes), first.as_plain())
    return next(iter(found), None)
