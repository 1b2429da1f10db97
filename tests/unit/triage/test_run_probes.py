"""The guard, the budget, the order and what was not looked at."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from aotidoctor.checks.check import Check
from aotidoctor.checks.registry import CHECKS
from aotidoctor.model.errors import UsageError
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.jobs import OBSERVE, Job, Run
from aotidoctor.model.run import Request, Signalled, TimedOut
from aotidoctor.probes import PROBES
from aotidoctor.triage import run_probes as ladder
from aotidoctor.triage.run_probes import run_probes
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import run_checks
from tests.unit.checks.input_builders import Spec, call, case_of, contract_of, tensor
from tests.unit.probes.outcomes import case, outcome, raised
from tests.unit.triage.test_confirmation import FINE, Replies


def boom(_case):
    raise ZeroDivisionError("a fault of our own")


def test_a_check_that_raises_costs_only_itself(monkeypatch):
    broken = Check(code="AD-X-001", name="broken", cause="x", stage="inputs", needs=(), run=boom)
    monkeypatch.setattr("aotidoctor.checks.registry.CHECKS", (broken, *CHECKS))
    session = Session(case=case_of(contract_of(Spec(16, 16)), call(tensor(16, 17))), runner=None)
    run_checks(session)
    assert "a fault of our own" in next(item.reason for item in session.not_checked if item.code == "AD-X-001")
    assert "AD-IN-013" in {item.code for item in session.findings}


def test_a_probe_that_raises_costs_only_itself(monkeypatch):
    probe = replace(PROBES[0], code="AD-X-002", name="broken", plan=lambda _case, _history: boom(None))
    monkeypatch.setattr(ladder, "PROBES", (probe, PROBES[0]))
    session = Session(case=case(), runner=Replies(outcome(outputs=FINE)))
    run_probes(session)
    assert [item.code for item in session.not_checked] == ["AD-X-002"]
    assert [item.kind for item in session.findings] == ["ok"]


def test_a_question_about_several_things_has_a_run_for_each(monkeypatch):
    def plan(_case, _history):
        asked = [Request(probe=f"several:{name}", job="script", payload=Job()) for name in "ab"]
        return (*asked, NotChecked(code="AD-X-003", name="several:c", reason="too many"))

    def read(_case, known, result):
        note = {"subject": result.request.probe, "observed": str(len(known.outcomes)), "expected": ""}
        return [Evidence(code="AD-X-003", kind="k", severity=Severity.INFO, **note)]

    probe = replace(PROBES[0], code="AD-X-003", name="several", plan=plan, read=read)
    monkeypatch.setattr(ladder, "PROBES", (probe,))
    replies = Replies(outcome("several:a"), outcome("several:b"))
    session = Session(case=case(), runner=replies)
    run_probes(session)
    assert list(session.outcomes) == ["several:a", "several:b"]
    assert [(item.subject, item.observed) for item in session.findings] == [("several:a", "1"), ("several:b", "2")]
    assert [(item.name, item.reason) for item in session.not_checked] == [("several:c", "too many")]


def test_what_depends_on_a_failed_check_is_not_checked():
    session = Session(case=case_of(contract_of({"a": Spec(16, 16)}), call([tensor(16, 17)])), runner=None)
    run_checks(session)
    reasons = {item.name: item.reason for item in session.not_checked}
    assert "input_tree" in reasons["input_shape"]


def test_ids_are_given_in_order():
    session = Session(case=case_of(contract_of(Spec(16, 16)), call(tensor(16, 17))), runner=None)
    run_checks(session)
    assert [item.id for item in session.findings] == [f"E{n}" for n in range(1, len(session.findings) + 1)]


def test_a_spent_budget_asks_nothing_more():
    session = Session(case=case(), runner=Replies(outcome(outputs=FINE)), deadline=time.monotonic())
    run_probes(session)
    assert session.out_of_time
    assert session.runner.requests == []


def test_the_budget_bounds_each_run():
    session = Session(
        case=case(timeout=60.0), runner=Replies(*[outcome(outputs=FINE)] * 9), deadline=time.monotonic() + 9
    )
    run_probes(session)
    assert session.runner.requests[0].timeout <= 9


def test_skipped_probes_are_told():
    session = Session(
        case=case(skip_rungs=("again", "memory_fill", "read_beyond")), runner=Replies(*[outcome(outputs=FINE)] * 9)
    )
    run_probes(session)
    assert [request.probe for request in session.runner.requests] == ["plain_run"]
    assert {"again", "memory_fill"} <= {item.name for item in session.not_checked if item.reason == "--skip-probes"}


@pytest.mark.parametrize("ending", [Signalled(signal=11, name="SIGSEGV"), TimedOut(limit=5)])
def test_a_debugger_that_could_not_look_was_not_looked_with(ending):
    problem = "ptrace is forbidden here"
    failed = outcome(ending=ending, stage="run1", debugger_problem=problem)
    session = Session(case=case(rungs=("backtrace",)), runner=Replies(*[failed] * 2))
    run_probes(session)
    assert [item.reason for item in session.not_checked if item.name == "backtrace"] == [problem]


def test_unknown_probes_are_a_usage_error():
    with pytest.raises(UsageError, match="nope"):
        ladder.check_probe_names(case(rungs=("nope",)))


def test_a_wrong_name_is_told_with_its_option():
    with pytest.raises(UsageError, match="--skip-probes"):
        ladder.check_probe_names(case(skip_rungs=("nope",)))


class Interrupted:
    def run(self, request):
        raise KeyboardInterrupt


def test_an_interrupt_tells_what_was_not_asked():
    session = Session(case=case(), runner=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        run_probes(session)
    assert {item.name for item in session.not_checked if item.reason == "interrupted"} == {item.name for item in PROBES}


def observing(**more):
    """A plain run with what it was asked to look at."""
    done = outcome(**more)
    return replace(done, request=replace(done.request, payload=Run(observe=("outputs", "values", "constants"))))


@pytest.mark.parametrize(("stage", "left"), [("scan", ()), ("constants", OBSERVE)])
@pytest.mark.parametrize("ending", [Signalled(signal=11, name="SIGSEGV"), TimedOut(limit=60)])
def test_what_fails_in_a_stage_of_ours_is_left_out_and_said(monkeypatch, stage, left, ending):
    monkeypatch.setattr(ladder, "PROBES", (PROBES[0],))
    replies = Replies(observing(stage=stage, ending=ending), observing(outputs=FINE))
    session = Session(case=case(), runner=replies)
    run_probes(session)
    assert replies.requests[-1].payload.observe == left
    assert [item.kind for item in session.findings] == ["ok"]
    (said,) = session.not_checked
    assert (said.name, said.is_fault) == ("plain_run", True)


def test_what_dies_without_being_looked_at_was_not_killed_by_the_looking(monkeypatch):
    """A kernel that writes past its buffer: the next who uses the heap dies, whoever that is."""
    monkeypatch.setattr(ladder, "PROBES", (PROBES[0],))
    died = Signalled(signal=11, name="SIGSEGV")
    replies = Replies(observing(stage="scan", ending=died), observing(stage="run2", ending=died))
    session = Session(case=case(), runner=replies)
    run_probes(session)
    assert [(item.kind, item.facts["stage"]) for item in session.findings] == [("signalled", "run2")]
    assert session.not_checked == []


def test_what_fails_in_our_hands_twice_says_nothing_of_the_model(monkeypatch):
    probe = replace(PROBES[0], name="looked", code="AD-X-004")
    monkeypatch.setattr(ladder, "PROBES", (probe,))
    broken = raised("more than one element of the written-to tensor refers to one place", stage="scan")
    session = Session(case=case(), runner=Replies(broken, broken))
    run_probes(session)
    assert session.findings == []
    assert {(item.code, item.is_fault) for item in session.not_checked} == {("AD-X-004", True)}


@pytest.mark.parametrize(
    "changes",
    [
        {"about": case(custom_ops=("zoo::scale",))},
        {"stderr_tail": "double free or corruption (out)\n"},
        {"stage": "run1"},
    ],
)
def test_what_may_be_the_model_s_is_not_ours(monkeypatch, changes):
    monkeypatch.setattr(ladder, "PROBES", (PROBES[0],))
    about = changes.pop("about", case())
    died = observing(**{"stage": "scan", "ending": Signalled(signal=6, name="SIGABRT"), **changes})
    session = Session(case=about, runner=Replies(died))
    run_probes(session)
    assert [item.kind for item in session.findings] == ["signalled"]
    assert session.not_checked == []


@pytest.mark.parametrize(
    ("stages", "calls"),
    [({"import": 5.0, "load": 5.0, "run1": 30.0, "scan": 1.0}, 1), ({"import": 1.0, "load": 1.0, "run1": 2.0}, None)],
)
def test_a_second_call_that_our_limit_cut_off_is_no_hang(monkeypatch, stages, calls):
    monkeypatch.setattr(ladder, "PROBES", (PROBES[0],))
    late = observing(stage="run2", ending=TimedOut(limit=60), stages=stages)
    replies = Replies(late, observing(outputs=FINE))
    session = Session(case=case(), runner=replies)
    run_probes(session)
    assert [item.kind for item in session.findings] == ["ok" if calls else "timed-out"]
    assert replies.requests[-1].payload.calls == (calls or 2)


def test_a_slow_start_is_given_another_try(monkeypatch):
    monkeypatch.setattr(ladder, "PROBES", (PROBES[0],))
    replies = Replies(observing(stage="import", ending=TimedOut(limit=60)), observing(outputs=FINE))
    session = Session(case=case(), runner=replies)
    run_probes(session)
    assert [item.kind for item in session.findings] == ["ok"]
    assert len(replies.requests) == 2
