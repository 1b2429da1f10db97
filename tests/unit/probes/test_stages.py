"""When the stages between a model and its package are looked at."""

from __future__ import annotations

import pytest

from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.run import Request
from aotidoctor.probes import stages
from tests.unit.probes.outcomes import case, history


def finding(code, kind, severity=Severity.ERROR, **facts):
    return Evidence(
        code=code, kind=kind, severity=severity, subject=None, observed="", expected="", facts=facts, id="E1"
    )


DIFFERS = finding("AD-RUN-011", "differs")


@pytest.mark.parametrize(
    ("options", "findings", "words"),
    [
        ({}, (), "could not be told apart"),
        ({"reference": "exported.pt2"}, (), "not found to differ"),
        ({"reference": "exported.pt2"}, (DIFFERS, finding("AD-IN-014", "stride")), "AD-IN-014 explains"),
        ({"reference": "exported.pt2"}, (DIFFERS, finding("AD-RUN-011", "weights")), "AD-RUN-011 explains"),
    ],
)
def test_why_not(options, findings, words):
    plan = stages.plan(case(**options), history(*findings))
    assert isinstance(plan, NotChecked)
    assert words in plan.reason


@pytest.mark.parametrize(
    ("findings", "moot"),
    [
        ((), True),
        ((finding("AD-RUN-001", "crash"),), False),
        ((finding("AD-RUN-001", "crash"), finding("AD-IN-003", "dtype")), True),
    ],
)
def test_only_a_run_that_failed_for_no_known_reason_says_what_could_not_be_told(findings, moot):
    assert stages.plan(case(), history(*findings)).moot is moot


def test_a_program_begins_with_its_decompositions():
    plan = stages.plan(case(reference="exported.pt2"), history(DIFFERS))
    assert isinstance(plan, Request)
    assert (plan.payload.stage, plan.payload.before, plan.payload.program) == ("decomposed", "exported", "exported.pt2")


def test_a_model_is_asked_whatever_is_known():
    plan = stages.plan(case(model="m.py:f", reference="m.py:f"), history(finding("AD-IN-014", "stride")))
    assert (plan.payload.stage, plan.payload.before, plan.payload.model) == ("eager", None, "m.py:f")
    assert plan.payload.program is None


def test_what_a_stage_proves_and_whether_its_remedy_was_tried():
    tried = finding("AD-RUN-038", "exported", stage="exported", against="eager", tried=True)
    assert list(stages.proof((tried,))) == ["export-specialization"]
    assert stages.untried_causes((tried,)) == ()
    untried = finding("AD-RUN-038", "decomposed", stage="decomposed", against="exported")
    assert list(stages.proof((untried,))) == ["codegen-bug"] == list(stages.untried_causes((untried,)))
    assert stages.proof((finding("AD-RUN-038", "agrees", Severity.INFO),)) == {}
