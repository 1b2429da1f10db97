"""CUDA wrappers as each release writes them: every statement is understood, and the launches are the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.expr import evaluate
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.package.read_package import read_artifact
from tests.artifacts.cuda_wrappers import written_by

CUDA = Path(__file__).parents[3] / "data" / "cuda"
FORMS = [(minor, False) for minor in range(6, 16)] + [(14, True), (15, True)]


@pytest.fixture(scope="module")
def package():
    artifact = read_artifact(str(CUDA / "mlp.pt2"))
    return artifact, artifact.models[0]


def contract_of(package, minor, *, tuned=False):
    artifact, model = package
    text = written_by(minor, model.wrapper_cpp, tuned=tuned)
    assert text != model.wrapper_cpp or minor == 13
    return read_contract(artifact, replace(model, wrapper_cpp=text))


@pytest.mark.parametrize(("minor", "tuned"), FORMS)
def test_the_wrapper_of_every_release_is_understood(package, minor, tuned):
    contract = contract_of(package, minor, tuned=tuned)
    assert contract.unread == ()
    assert [(output.dtype, output.shape) for output in contract.outputs] == [("float32", ("s77", "8"))]


@pytest.mark.parametrize(("minor", "tuned"), FORMS)
def test_launches_have_their_settings_in_every_release(package, minor, tuned):
    found = [call for call in contract_of(package, minor, tuned=tuned).kernels if call.kind == "triton"]
    wanted = [call for call in contract_of(package, 13).kernels if call.kind == "triton"]
    assert len(found) == 2
    for call, want in zip(found, wanted, strict=True):
        assert (call.name, call.warps, call.shared, call.guarded) == (want.name, want.warps, want.shared, True)
        assert call.device_code is not None
        assert call.device_code == want.device_code
        assert [name for name in call.arguments if name.startswith(("buf", "l1"))] == [
            name for name in want.arguments if name.startswith(("buf", "l1"))
        ]
        assert len(call.grid) == 3
        sizes = {"xnumel": 1000, "triton_poi_fused_addmm_relu_0_xnumel": 1000}
        sizes["triton_poi_fused_addmm_mul_sigmoid_1_xnumel"] = 1000
        assert evaluate(parse_expr(call.grid[0]), sizes) == evaluate(parse_expr(want.grid[0]), sizes)


@pytest.mark.parametrize("minor", range(6, 16))
def test_the_device_code_of_every_release_is_looked_for(package, minor):
    artifact, model = package
    contract = contract_of(package, minor)
    assert contract.needs.missing_gpu_code == ()
    members = tuple(member for member in model.members if not member.name.endswith(".cubin"))
    without = replace(model, wrapper_cpp=written_by(minor, model.wrapper_cpp), members=members)
    assert len(read_contract(artifact, without).needs.missing_gpu_code) == 2
