"""Faults of the compiler that print nothing are known by operator, dtype and symptom."""

from __future__ import annotations

import pytest

from aotidoctor.diagnosis.playbooks import find_playbook, known_fault, load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.model.evidence import Evidence, Severity

CODEGEN = find_playbook("codegen-bug")


def finding(code, kind, subject=None, **facts):
    return Evidence(
        code=code,
        kind=kind,
        severity=Severity.ERROR,
        subject=subject,
        observed="so",
        expected="",
        facts=facts,
        id=f"E-{code}",
    )


def numbers(dtype):
    return finding("AD-RUN-011", "differs", "result", dtype=dtype, verdict="package-wrong")


def dtype_of(operator, expected):
    return finding("AD-RUN-018", "dtype", operator, expected=expected, operator=operator)


@pytest.mark.parametrize(
    ("lead", "others", "issue"),
    [
        (dtype_of("aten.any.dim", "uint8"), (), "pytorch#198081"),
        (dtype_of("aten.any.dim", "bool"), (), None),
        (dtype_of("aten.all.dim", "uint8"), (), None),
        (dtype_of("aten.bmm.default", "int8"), (), "pytorch#191308"),
        (dtype_of("aten.baddbmm.default", "int8"), (), None),
        (finding("AD-RUN-018", "found", "aten.remainder.Tensor"), (numbers("float32"),), "pytorch#198057"),
        (finding("AD-RUN-018", "kernel", "cpp_fused_mul_remainder_0"), (numbers("float32"),), "pytorch#198057"),
        (finding("AD-RUN-018", "found", "aten.remainder.Scalar"), (numbers("bfloat16"),), "pytorch#183083"),
        (finding("AD-RUN-018", "found", "aten.remainder.Tensor"), (), None),
        (finding("AD-RUN-018", "kernel", "cpp_fused_add_div_0"), (numbers("float32"),), "pytorch#197895"),
        (finding("AD-RUN-018", "found", "aten.exp.default"), (numbers("float32"),), None),
        (finding("AD-RUN-038", "decomposed", "aten.div.Tensor_mode"), (numbers("float32"),), "pytorch#197895"),
        (finding("AD-RUN-040", "overflow", "aten.div.Tensor"), (numbers("float32"),), None),
    ],
)
def test_a_fault_is_known_by_what_it_does(lead, others, issue):
    found = known_fault(CODEGEN, lead, (lead, *others))
    assert (found.issue if found is not None else None) == issue


def test_the_remedy_names_the_issue():
    findings = (dtype_of("aten.any.dim", "uint8"),)
    (first,) = diagnose(findings, load_playbooks({"AD-RUN-018"}))
    assert first.cause == "codegen-bug"
    assert "https://github.com/pytorch/pytorch/issues/198081" in first.remedy.text
