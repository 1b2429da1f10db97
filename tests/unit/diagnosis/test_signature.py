from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.diagnosis import diagnose, load_playbooks, signature
from aotidoctor.diagnosis.signature import normal_subject
from aotidoctor.model.evidence import Evidence, Severity

PLAYBOOKS = load_playbooks()
FAILED = Evidence(
    code="AD-RUN-001",
    kind="raised",
    severity=Severity.ERROR,
    subject="cpp_fused_embedding_mul_0",
    observed="index out of bounds: 0 <= tmp2 < 100L",
    expected="",
    facts={"stage": "run1", "symptom": "index-out-of-bounds", "kernel": "cpp_fused_embedding_mul_0"},
)


def made(*findings):
    return signature(diagnose(findings, PLAYBOOKS), findings, ())


def test_form_and_stability():
    assert made(FAILED) == made(FAILED)
    assert made(FAILED).startswith("aotidoctor1:")
    assert len(made(FAILED)) == len("aotidoctor1:") + 16


def test_numbers_of_kernels_and_messages_do_not_count():
    other = replace(
        FAILED,
        subject="cpp_fused_embedding_mul_7",
        observed="index out of bounds: 0 <= tmp9 < 50L",
        facts={**FAILED.facts, "kernel": "cpp_fused_embedding_mul_7"},
    )
    assert made(other) == made(FAILED)


def test_another_kernel_symptom_or_cause_counts():
    kernel = replace(FAILED, facts={**FAILED.facts, "kernel": "cpp_fused_gather_0"})
    symptom = replace(FAILED, facts={**FAILED.facts, "symptom": "integer-division"})
    assert len({made(FAILED), made(kernel), made(symptom), made()}) == 4


@pytest.mark.parametrize(
    ("subject", "normal"),
    [
        ("args[0]['a'].shape[1]", "args[0]['a'].shape[1]"),
        ("/home/me/models/model.pt2", "model.pt2"),
        ("triton_poi_fused_add_12", "triton_poi_fused_add"),
        ("c5guxrk6ccepukslcbfglrzrh3r2luchxge7cgg2nsh5lfhblw3c.wrapper.so", "<hash>.wrapper.so"),
        (None, ""),
    ],
)
def test_subjects_are_normalised(subject, normal):
    assert normal_subject(subject) == normal
