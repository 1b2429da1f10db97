"""One ranking of what the output says, what the files say and what runs under other settings said."""

from __future__ import annotations

import pytest

from aotidoctor.commands.watch.watch_report import merge_causes
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.report import Diagnosis, Remedy, Status


def cause(name, *evidence, confidence=0.8, stage="run", severity=Severity.ERROR, subject=None):
    return Diagnosis(
        cause=name, rank=1, status=Status.SUSPECTED, confidence=confidence, title="", looked_like="", subject=subject,
        evidence=evidence, remedy=Remedy(text=""), playbook=name, severity=severity, stage=stage,
    )  # fmt: skip


def found(id, code):
    return Evidence(id=id, code=code, kind="", severity=Severity.ERROR, subject=None, observed="", expected="")


FINDINGS = (found("E1", "AD-RUN-003"), found("E2", "AD-LOG-001"), found("E3", "AD-HOST-006"), found("E4", "AD-ART-002"))


def test_the_checks_complaint_explains_the_words():
    ranked = merge_causes(
        [cause("input-dtype", "E1", subject="args[0]")], [cause("index-out-of-range", "E2", confidence=0.95)], FINDINGS
    )
    assert [(one.cause, one.rank, one.evidence) for one in ranked] == [("input-dtype", 1, ("E1", "E2"))]


def test_the_words_come_before_what_only_the_files_show():
    ranked = merge_causes(
        [cause("abi-mismatch", "E3", stage="host")], [cause("index-out-of-range", "E2", confidence=0.95)], FINDINGS
    )
    assert [(one.cause, one.rank) for one in ranked] == [("index-out-of-range", 1), ("abi-mismatch", 2)]


def test_a_broken_file_explains_words_that_are_not_sure():
    said = cause("artifact-layout", "E2", confidence=0.6, stage="load")
    ranked = merge_causes([cause("artifact-corrupt", "E4", stage="artifact")], [said], FINDINGS)
    assert ranked[0].cause == "artifact-corrupt"


def test_a_cause_from_two_sources_is_one():
    ranked = merge_causes(
        [cause("custom-op-missing", "E3", subject="zoo::x", confidence=0.7)],
        [cause("custom-op-missing", "E2", confidence=0.9), cause("custom-op-missing", "E1")],
        FINDINGS,
    )
    assert [(one.cause, one.subject, one.confidence, set(one.evidence)) for one in ranked] == [
        ("custom-op-missing", "zoo::x", 0.9, {"E1", "E2", "E3"})
    ]


@pytest.mark.parametrize("severity", [Severity.WARN, Severity.INFO])
def test_a_warning_explains_nothing(severity):
    warned = cause("input-dtype", "E1", severity=severity)
    ranked = merge_causes([warned], [cause("index-out-of-range", "E2")], FINDINGS)
    assert [one.cause for one in ranked] == ["index-out-of-range", "input-dtype"]


def test_nothing_is_nothing():
    assert merge_causes([], [], ()) == ()
