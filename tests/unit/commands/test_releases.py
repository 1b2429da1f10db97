"""``check`` of real packages of older releases: everything that the package or its program tells is judged right."""

from __future__ import annotations

import pytest

from aotidoctor.commands.diagnose_package import diagnose
from aotidoctor.model.case import Options
from aotidoctor.readers.contract.sourceless_contract import recovered_contract
from aotidoctor.readers.provenance.compare_program import complete_contract
from aotidoctor.triage.open_case import read_reference
from tests.artifacts.machines import with_every_vector_unit
from tests.artifacts.releases import NEEDS_A_RUN, ROOT, Sample, samples
from tests.every import every

_LEAF = '{"type": null, "context": null, "children_spec": []}'
SPEC = (
    '[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", "context": "null", '
    f'"children_spec": [{_LEAF}, {_LEAF}]}}, {{"type": "builtins.dict", "context": "[]", "children_spec": []}}]}}]'
)

# Of inputs a package of 2.6 tells what its kernels read them as, and how far: these have an input that is too short.
TOLD_BY_2_6 = ("input-dtype", "input-kwargs")
TOO_SHORT = ("2.6.0-dyn-batch_differs", "2.6.0-dyn-seq_differs", "2.6.0-dyn-derived_off", "2.6.0-emb-w_shape")
# And the steps of their loops, which another stride, size or number of dims does not go with.
OFF_STEP = ("2.6.0-dyn-hidden", "2.6.0-dyn-stride", "2.6.0-custop-stride", "2.6.0-emb-rank")


@pytest.fixture(autouse=True)
def where_they_were_compiled(monkeypatch):
    with_every_vector_unit(monkeypatch)


def first_cause(sample: Sample, reference: str | None) -> str | None:
    report = diagnose(sample.package, sample.inputs, Options(reference=reference), environ={}, static_only=True)
    return report.diagnoses[0].cause if report.diagnoses else None


@every("sample", samples(), ids=str, chunks=2)
def test_with_its_program_everything_static_is_told(sample):
    expected = None if sample.cause in NEEDS_A_RUN else sample.cause
    assert first_cause(sample, sample.program) == expected


@every("sample", samples(), ids=str, chunks=2)
def test_without_a_program_nothing_wrong_is_told(sample):
    silent = sample.cause in NEEDS_A_RUN
    silent |= sample.release == "2.6.0" and not (sample.cause in TOLD_BY_2_6 or str(sample) in (*TOO_SHORT, *OFF_STEP))
    assert first_cause(sample, None) == (None if silent else sample.cause)


def test_what_a_package_without_checks_leaves_open_is_named():
    sample = next(one for one in samples() if str(one) == "2.6.0-dyn-good")
    alone = diagnose(sample.package, sample.inputs, Options(), environ={}, static_only=True)
    assert alone.verdict == "healthy"
    reason = {item.name: item for item in alone.not_checked}["input_rank"]
    assert not reason.moot
    assert "args[1]" in reason.reason
    assert alone.case.contract.leaves[1].dtype == "float32", "the kernel reads it as const float*"
    told = diagnose(sample.package, sample.inputs, Options(reference=sample.program), environ={}, static_only=True)
    assert told.case.contract.completed == ("args[0]", "args[1]", "args[2]")
    assert "input_rank" not in {item.name for item in told.not_checked}
    assert [str(dim.expr) for dim in told.case.contract.leaves[2].dims] == ["s1 + 1", "8"]


def test_a_library_without_checks_leaves_its_inputs_open():
    """What the worker tells of a bare library of torch 2.6, and what the program adds to that."""
    told = {
        "n_inputs": 2,
        "call_spec": [SPEC, ""],
        "inputs": [{"name": name, "dims": [], "strides": []} for name in ("arg2_1", "arg3_1")],
        "problems": ["the package was built without input checks, so its inputs could not be probed"],
    }
    alone = recovered_contract("model", told)
    assert [(leaf.kind, leaf.dtype, leaf.rank) for leaf in alone.leaves] == [("tensor", None, None)] * 2
    program = read_reference(str(ROOT / "2.6.0" / "custop" / "exported.pt2"))
    assert program is not None
    leaves = complete_contract(alone, program).leaves
    assert [(leaf.dtype, leaf.rank, leaf.strides) for leaf in leaves] == [("float32", 2, (8, 1))] * 2
    assert {str(leaf.dims[0].expr) for leaf in leaves} == {"s0"}
