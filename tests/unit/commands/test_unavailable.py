"""Only the reference that cannot run makes a comparison impossible, not any question that found no answer."""

from __future__ import annotations

import pytest

from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.probes import call_trace, kernel_values, reference
from aotidoctor.triage.finish import cannot_examine_reason
from aotidoctor.triage.state import Session


def evidence(code: str, kind: str, severity: Severity = Severity.WARN) -> Evidence:
    return Evidence(code=code, kind=kind, severity=severity, subject=None, observed="why", expected="")


def session_with(*found: Evidence) -> Session:
    artifact = Artifact(path="model.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1)
    case = Case(artifact=artifact, host=Host(system="Linux", machine="x86_64", python="3.11"))
    return Session(case=case, runner=None, findings=list(found))


@pytest.mark.parametrize("code", [call_trace.CODE, kernel_values.CODE])
def test_other_questions_may_have_no_answer(code):
    assert cannot_examine_reason(session_with(evidence(code, "unavailable", Severity.INFO)), ()) is None


def test_a_reference_that_cannot_run_is_told():
    found = evidence(reference.CODE, "unavailable", Severity.INFO)
    assert cannot_examine_reason(session_with(found), ()) == "no comparison with the reference: why"


ANOTHER, RAISES = evidence("AD-REF-001", "another-program"), evidence(reference.CODE, "raises")


def test_another_program_that_raises_is_no_comparison():
    reason = cannot_examine_reason(session_with(ANOTHER, RAISES), ())
    assert reason == "no comparison with the reference, which is a different program: why"


@pytest.mark.parametrize("found", [(ANOTHER,), (RAISES,)])
def test_either_alone_leaves_something_to_say(found):
    assert cannot_examine_reason(session_with(*found), ()) is None


def test_a_failure_of_the_package_is_not_hidden_by_a_useless_reference():
    failed = evidence("AD-RUN-001", "exception", Severity.ERROR)
    assert cannot_examine_reason(session_with(failed, ANOTHER, RAISES), ()) is None
