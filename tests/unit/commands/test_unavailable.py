"""Only the reference that cannot run makes a comparison impossible, not any question that found no answer."""

from __future__ import annotations

import pytest

from aotidoctor.commands.diagnose import _cannot_examine
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.host import Host
from aotidoctor.probes import call_trace, kernel_values, reference
from aotidoctor.triage.session import Session


def session_with(code: str) -> Session:
    artifact = Artifact(path="model.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1)
    case = Case(artifact=artifact, host=Host(system="Linux", machine="x86_64", python="3.11"))
    found = Evidence(code=code, kind="unavailable", severity=Severity.INFO, subject=None, observed="why", expected="")
    return Session(case=case, runner=None, findings=[found])


@pytest.mark.parametrize("code", [call_trace.CODE, kernel_values.CODE])
def test_other_questions_may_have_no_answer(code):
    assert _cannot_examine(session_with(code), ()) is None


def test_a_reference_that_cannot_run_is_told():
    assert _cannot_examine(session_with(reference.CODE), ()) == "no comparison with the reference: why"
