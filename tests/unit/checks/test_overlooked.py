"""A check whose facts stand in statements that were not understood says so, and keeps what it found."""

import pytest

from aotidoctor.checks.check import ANY
from aotidoctor.checks.registry import CHECKS
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host
from aotidoctor.model.contract import ModelContract, Unread
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import overlooked_by_checks, run_checks

FACTS = {
    "input", "input-check", "symbol", "assert", "buffer", "call", "launch", "device-code", "output", "constant",
    "call-spec",
}  # fmt: skip


def case_with(*facts):
    unread = tuple(Unread(part="body", fact=fact, count=2, line=7, example=f"odd({fact});") for fact in facts)
    contract = ModelContract(
        model_name="model", source="wrapper.cpp", args=None, kwargs=None, leaves=(), n_inputs=0, unread=unread
    )
    return Case(
        artifact=Artifact(path="m.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1),
        host=Host(system="Linux", machine="x86_64", python="3.11"),
        contract=contract,
    )


def test_every_kind_of_fact_is_needed_by_a_check_and_no_check_needs_another():
    assert {fact for check in CHECKS for fact in check.facts} == FACTS


@pytest.mark.parametrize("fact", sorted(FACTS))
def test_the_checks_that_need_a_lost_fact_say_so(fact):
    found = {item.name: item.reason for item in overlooked_by_checks(case_with(fact))}
    assert set(found) == {check.name for check in CHECKS if fact in check.facts}
    assert all(f"line 7: odd({fact});" in reason and reason.startswith("2 statements") for reason in found.values())


def test_a_statement_that_may_hold_anything_concerns_every_check_of_the_wrapper():
    found = {item.name for item in overlooked_by_checks(case_with(ANY))}
    assert found == {check.name for check in CHECKS if check.facts}
    assert overlooked_by_checks(case_with()) == []


def test_the_session_reports_it_beside_what_was_found():
    session = Session(case=case_with("constant"), runner=None)
    run_checks(session)
    missed = [item for item in session.not_checked if "could not be read: a constant" in item.reason]
    assert {item.name for item in missed} == {check.name for check in CHECKS if "constant" in check.facts}
