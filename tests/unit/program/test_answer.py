"""The child's answer as findings and notes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.evidence import Severity
from aotidoctor.model.jobs import Job
from aotidoctor.model.run import ChildError, Exited, NotStarted, Outcome, OutOfMemory, Request, Signalled, TimedOut
from aotidoctor.program import verify_stages

RECORD = {
    "code": "VERIFY-S02",
    "kind": "input-name",
    "node": "x",
    "target": None,
    "graph": "",
    "where": None,
    "observed": "the signature has y where the graph has x",
    "expected": "x",
    "facts": {},
}
LATER = {**RECORD, "code": "VERIFY-A09", "kind": "large-constants"}


def outcome(**result):
    request = Request(probe="verify", job="verify", payload=Job())
    return Outcome(id="R1", request=request, ending=Exited(code=0, done=True), stage="done", result=result)


def program(**answered):
    (made,) = verify_stages.judged_programs(outcome(programs=[answered]))
    return made


def test_the_verifiers_sentence_goes_with_its_own_rules():
    says = "Input spec name y does not match"
    made = verify_stages.program_findings(
        program(records=[RECORD, LATER], verifier="refuses", verifier_says=says), "p.pt2"
    )
    assert made[0].facts["verifier"] == "Input spec name y does not match"
    assert "verifier" not in made[1].facts


def test_a_rule_that_the_installed_verifier_does_not_have_only_warns():
    made = verify_stages.program_findings(program(records=[RECORD, LATER], verifier="passes"), "p.pt2")
    assert [item.severity for item in made] == [Severity.WARN, Severity.WARN]
    assert "accepts it" in made[0].message


def test_what_was_left_out_is_told():
    notes = verify_stages.rules_left_out(program(skipped={"A02": "no way", "G": "own error"}, cut={"G01": 7}))
    assert [(item.code, item.name) for item in notes] == [
        ("VERIFY-A02", "missing_shim"),
        ("VERIFY-G", "graph"),
        ("VERIFY-G01", "val_missing"),
    ]
    assert notes[-1].reason.startswith("7 more")


def test_an_answer_that_is_none():
    assert verify_stages.judged_programs(None) == ()
    assert verify_stages.judged_programs(outcome()) == ()
    assert verify_stages.rules_left_out(program()) == []
    assert verify_stages.verifier_result([]) == {}
    assert verify_stages.verifier_result([outcome(programs=[{"verifier": "passes"}])]) == {"verifier": "passes"}


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (Signalled(signal=11, name="SIGSEGV"), "SIGSEGV"),
        (TimedOut(limit=60.0), "no end within 60 s"),
        (OutOfMemory(reason="killed above 2 GiB"), "killed above 2 GiB"),
        (NotStarted(reason="no such interpreter"), "no such interpreter"),
        (Exited(code=7, done=False), "exit 7"),
    ],
)
def test_an_answer_that_never_came_says_how_the_child_ended(ending, words):
    assert verify_stages.why_no_answer(replace(outcome(), ending=ending, stage="import")) == (
        f"the child ended in stage import: {words}"
    )


def test_an_answer_that_never_came_says_what_was_raised_or_that_nothing_was_asked():
    raised = ChildError(type="ValueError", message="m" * 1000)
    assert verify_stages.why_no_answer(replace(outcome(), error=raised)) == "ValueError: " + "m" * 488
    assert verify_stages.why_no_answer(None) == "the time budget is spent"
