"""The reference is another program: said once, by what compiling cannot change, and only where there is a program."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.checks.reference_mismatch import CHECK
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host, Options
from aotidoctor.model.evidence import NotChecked, Severity
from tests.unit.program.test_provenance import contract, leaf, program, spec


def case(given="exported.pt2", **changes):
    made = Case(
        artifact=Artifact(path="model.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1),
        host=Host(system="Linux", machine="x86_64", python="3.11"),
        options=Options(reference=given),
        contract=contract(),
        reference=program(),
    )
    return replace(made, **changes)


def test_the_same_program():
    assert CHECK.run(case()) == []


def test_another_program():
    (found,) = CHECK.run(case(contract=contract(leaf(dtype="float64"), n_outputs=2)))
    assert (found.code, found.kind, found.severity) == ("AD-REF-001", "another-program", Severity.WARN)
    assert (found.subject, found.observed) == ("args[0]", "float64 (1 more difference)")
    assert found.source.file == "exported.pt2"
    facts = {key: found.facts[key] for key in ("aspect", "difference", "differences")}
    assert facts == {"aspect": "inputs", "difference": "dtype", "differences": 2}
    assert "args[0]: float64" in found.facts["remedy"]
    assert "'exported.pt2'" in found.facts["command"]


@pytest.mark.parametrize("device", ["cuda", None])
def test_what_compiling_and_moving_may_change_is_no_alarm(device):
    package = contract(leaf(device_type=device, strides=(1, 99)), in_spec="[1, {}]")
    assert CHECK.run(case(contract=package, reference=program(spec(), in_spec="[1, []]"))) == []


@pytest.mark.parametrize("reference", [None, "model.py:forward"])
def test_no_program_to_compare_with(reference):
    assert CHECK.run(case(reference, reference=None)) == []


@pytest.mark.parametrize(
    ("lost", "why"),
    [("reference", "not a readable torch.export archive"), ("contract", "contains no contract (no wrapper.cpp)")],
)
def test_what_cannot_be_read_is_said(lost, why):
    answer = CHECK.run(case(**{lost: None}))
    assert isinstance(answer, NotChecked)
    assert why in answer.reason
