"""In which ways a script can show a failure, the most direct first."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import pytest

from aotidoctor.commands.repro.attempts import CHECKS, Bench, BudgetSpentError, CallEnding, Mode, modes
from aotidoctor.commands.repro.repro_script import Recipe
from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.report import EventKind
from aotidoctor.model.run import TimedOut
from tests.unit.probes import outcomes
from tests.unit.reports import builders

BASE = Recipe(title="t", args="(x,)")
CASE = builders.misleading().case
FIRST = builders.misleading().diagnoses[0]


def finding(code, kind="returned", severity=Severity.INFO, **facts):
    return Evidence(code=code, kind=kind, severity=severity, subject=None, observed="", expected="", facts=facts)


RAN = finding("AD-RUN-001")
FAILED = finding("AD-RUN-001", "signalled", Severity.ERROR, signal="SIGSEGV")
NAN = finding("AD-RUN-005", "nan", Severity.ERROR)
DIFFERS = finding("AD-RUN-002", "differs", Severity.WARN)
SAME = finding("AD-RUN-002", "same")
CHECKED = finding("AD-RUN-003", "raised", Severity.ERROR, line="expected 16 but got 17")
HEALED = finding("AD-TREAT-001", "healed", cause="input-dtype")
REMAINS = replace(HEALED, kind="remains")


def asked(*findings, cause=None, case=CASE, base=BASE):
    diagnoses = [] if cause is None else [replace(FIRST, cause=cause)]
    return list(modes(case, diagnoses, findings, base))


@pytest.mark.parametrize(
    ("findings", "cause", "names"),
    [
        ([FAILED, NAN, CHECKED], "input-dtype", ["as it is"]),
        ([], None, ["load only", "the call"]),
        ([RAN], None, []),
        ([RAN, NAN], None, ["NaN or Inf"]),
        ([RAN, DIFFERS], None, ["two calls"]),
        ([RAN, SAME], None, []),
        ([RAN], "input-mutation", ["unchanged"]),
        ([RAN], "output-alias", ["separate"]),
        ([RAN, CHECKED], None, ["input checks"]),
        ([RAN, NAN, DIFFERS, CHECKED], None, ["NaN or Inf", "two calls", "input checks"]),
    ],
)
def test_what_is_tried(findings, cause, names):
    assert [mode.name for mode in asked(*findings, cause=cause)] == names


def test_without_a_call_there_is_only_the_load():
    (mode,) = asked(base=replace(BASE, args=None))
    assert (mode.name, mode.recipe.args, mode.wanted) == ("load only", None, None)


def test_the_failure_itself_is_wanted_where_the_plain_run_had_one():
    (mode,) = asked(FAILED)
    assert (mode.recipe, mode.wanted) == (BASE, CallEnding(kind="signalled", detail="SIGSEGV"))


def test_the_checks_of_the_package_are_switched_on_by_the_script():
    base = replace(BASE, environment=(("A", "1"),))
    (mode,) = asked(RAN, CHECKED, base=base)
    assert mode.recipe.environment == (("A", "1"), CHECKS)
    # Numbers are those of one process.
    assert mode.wanted == CallEnding(kind="raised", detail="expected N but got N")


@pytest.mark.parametrize(("cause", "asked_for"), [("numeric-difference", True), ("weights-differ", True), ("isa-mismatch", False)])  # fmt: skip
def test_the_program_is_compared_with_where_numbers_are_the_failure(cause, asked_for):
    case = replace(CASE, reference=ExportedFacts(name="e"))
    assert ("the exported program" in [mode.name for mode in asked(RAN, cause=cause, case=case)]) is asked_for
    assert not asked(RAN, cause=cause)


def dtype_finding():
    return replace(builders.misleading().findings[0], severity=Severity.ERROR)


@pytest.mark.parametrize(
    ("findings", "cause", "case", "repaired"),
    [
        ([HEALED], "input-dtype", CASE, True),
        ([REMAINS], "input-dtype", CASE, False),
        ([HEALED], "isa-mismatch", CASE, False),
        ([HEALED], "input-dtype", replace(CASE, inputs=None), False),
    ],
)
def test_the_repaired_call_is_compared_with_where_the_repair_helped(findings, cause, case, repaired):
    found = asked(RAN, dtype_finding(), *findings, cause=cause, case=case)
    assert [mode.name for mode in found] == (["the repaired call"] if repaired else [])
    for mode in found:
        assert mode.recipe.verdict == "treated"
        assert "torch.int64" in mode.recipe.treated


ASSERTION = CallEnding(kind="raised", detail="AssertionError: NaN or Inf in the result")
CRASH = CallEnding(kind="signalled", detail="SIGSEGV")


@pytest.mark.parametrize(
    ("verdict", "wanted", "ending", "matches"),
    [
        ("", CRASH, CRASH, True),
        ("", CRASH, replace(CRASH, detail="SIGFPE"), False),
        ("", CRASH, replace(CRASH, phase="load"), False),
        ("", None, CRASH, True),
        ("", None, None, False),
        ("finite", None, ASSERTION, True),
        ("finite", None, CRASH, False),
        ("finite", None, replace(ASSERTION, detail="ValueError: x"), False),
        ("finite", None, None, False),
    ],
)
def test_whether_a_script_ended_as_it_should(verdict, wanted, ending, matches):
    mode = Mode(name="m", recipe=replace(BASE, verdict=verdict), wanted=wanted)
    assert mode.matches(ending) is matches


@dataclass
class Hanging:
    """A runner whose runs all reach their limit."""

    limits: list[float] = field(default_factory=list)

    def run(self, request):
        self.limits.append(request.timeout)
        return outcomes.outcome(ending=TimedOut(limit=request.timeout))


@pytest.mark.parametrize(("seconds", "runs"), [(3600.0, 1), (0.0, 0)])
def test_every_attempt_that_begins_has_an_end_also_where_the_budget_ends_it(tmp_path, seconds, runs):
    events, runner = [], Hanging()
    deadline = time.monotonic() + seconds
    bench = Bench(case=CASE, runner=runner, folder=tmp_path, timeout=7200.0, on_event=events.append, deadline=deadline)
    with pytest.raises(BudgetSpentError):
        bench.ending(BASE, "unchanged")
    assert [event.kind for event in events] == [EventKind.PROBE_START, EventKind.PROBE_END] * runs
    assert [limit <= seconds for limit in runner.limits] == [True] * runs
