"""Which cause comes first once custom operators were called alone, and what it names."""

from __future__ import annotations

import pytest

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.model.evidence import Evidence, Severity

OP = "zoo::misbehave"
PLAYBOOKS = load_playbooks()


def found(code, kind, severity=Severity.ERROR, *, subject=OP, **facts):
    return Evidence(code=code, kind=kind, severity=severity, subject=subject, observed="seen", expected="", facts=facts)


def ended(kind, **facts):
    """What the plain run of a package with two operators tells: no subject."""
    return found("AD-RUN-001", kind, subject=None, stage="run1", has_custom_ops=True, **facts)


DIED, RAISED = ended("signalled", signal="SIGSEGV"), ended("raised", symptom="other", line="KeyError: 'vocab'")
CLEARED = found("AD-RUN-015", "cleared", Severity.INFO, looped=True)
UNREACHED = found("AD-RUN-020", "unreached", Severity.INFO)


def alone(kind, **facts):
    return found("AD-RUN-015", kind, **facts)


@pytest.mark.parametrize(
    ("findings", "cause"),
    [
        ([DIED, alone("signalled", signal="SIGSEGV")], "custom-op-crash"),
        ([RAISED, alone("raised")], "custom-op-exception"),
        ([ended("exited", exit_code=0), alone("exited")], "custom-op-exits"),
        ([ended("timed-out", limit=5), alone("timed-out")], "custom-op-hang"),
        ([ended("raised", symptom="op-no-storage"), alone("bad-return")], "custom-op-bad-return"),
        ([ended("raised", symptom="alloc-failed"), alone("out-of-memory")], "out-of-memory"),
        ([ended("signalled", signal="SIGKILL"), alone("killed")], "killed"),
        ([DIED, alone("fake-kernel", what="dtype")], "custom-op-fake-kernel"),
        ([alone("fake-kernel", what="dtype")], "custom-op-fake-kernel"),
        ([found("AD-RUN-011", "differs", subject="result"), alone("fake-kernel")], "custom-op-fake-kernel"),
        ([found("AD-RUN-002", "differs", subject=None), alone("fake-kernel")], "custom-op-fake-kernel"),
        ([found("AD-RUN-011", "differs", subject="result"), alone("mutates")], "custom-op-contract"),
        ([found("AD-RUN-008", "grows", subject=None, has_custom_ops=True), alone("grows")], "custom-op-leak"),
        ([found("AD-RUN-002", "differs", subject=None), alone("random")], "nondeterministic"),
        ([found("AD-RUN-005", "nan-output", subject="result", clean=True), alone("nan")], "nan-produced"),
    ],
)
def test_an_operator_that_fails_alone_is_the_culprit(findings, cause):
    first = diagnose(findings, PLAYBOOKS)[0]
    assert first.cause == cause
    assert first.confidence >= 0.8
    # A signal from outside is nobody's; everything else is named.
    assert first.subject == OP or cause == "killed"


def test_a_call_by_name_that_is_refused_for_the_numbers_beside_it_wants_a_shim():
    """Nothing of it is the operator's doing; what a custom one is given in such a way is not told here."""
    refused = found("AD-RUN-001", "raised", subject=None, stage="run1", symptom="proxy-arguments", has_custom_ops=False)
    assert [item.cause for item in diagnose([refused], PLAYBOOKS)] == ["missing-c-shim"]
    custom = ended("raised", symptom="proxy-arguments")
    assert "missing-c-shim" not in [item.cause for item in diagnose([custom], PLAYBOOKS)]


@pytest.mark.parametrize("note", [CLEARED, UNREACHED])
def test_a_crash_is_not_blamed_on_operators_that_did_nothing_wrong(note):
    causes = [item.cause for item in diagnose([DIED, note], PLAYBOOKS)]
    assert "custom-op-crash" not in causes
    assert causes[0] == "kernel-crash"
    assert diagnose([DIED], PLAYBOOKS)[0].cause == "custom-op-crash"


@pytest.mark.parametrize("note", [CLEARED, UNREACHED])
def test_nor_is_an_exception(note):
    assert [item.cause for item in diagnose([RAISED, note], PLAYBOOKS)] == []
    assert diagnose([RAISED], PLAYBOOKS)[0].cause == "custom-op-exception"


def test_nor_is_memory_that_grows():
    grows = found("AD-RUN-008", "grows", subject=None, has_custom_ops=True)
    assert diagnose([grows, CLEARED], PLAYBOOKS)[0].cause == "memory-leak"
    assert diagnose([grows], PLAYBOOKS)[0].cause == "custom-op-leak"


@pytest.mark.parametrize("kind", ["random", "nan", "fake-differs", "ok"])
def test_notes_about_operators_make_no_diagnosis(kind):
    assert diagnose([found("AD-RUN-015", kind, Severity.INFO)], PLAYBOOKS) == ()


@pytest.mark.parametrize("kind", ["aliases", "opcheck", "bad-return", "raised", "signalled"])
def test_nor_do_warnings_where_nothing_failed(kind):
    assert diagnose([found("AD-RUN-015", kind, Severity.WARN)], PLAYBOOKS) == ()
