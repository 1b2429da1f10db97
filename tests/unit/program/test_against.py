"""Which operators a package calls, by shim or by name, and why constants are not compared."""

from __future__ import annotations

import pytest

from aotidoctor.model.artifact import ArchivePayload, ExportedFacts, ProgramArchive, StoredTensor
from aotidoctor.model.contract import KernelCall, ModelContract
from aotidoctor.program.compiled_from import OriginCase, calls_operator, judge_origin
from tests.unit.reports import builders

KERNELS = (
    KernelCall(name="aoti_torch_cpu_sort_stable", kind="extern"),
    KernelCall(name="aoti_torch_cpu_addmm_out", kind="extern"),
    KernelCall(name="torch.ops.my.scale.default", kind="custom"),
    KernelCall(name="cpp_fused_relu_0", kind="cpp"),
)


def judged(stored=None, weights=None, constants=None):
    contract = ModelContract(
        model_name="m", source="wrapper.cpp", args=builders.CONTRACT.args, kwargs=builders.CONTRACT.kwargs,
        leaves=builders.CONTRACT.leaves, n_inputs=3, kernels=KERNELS,
    )  # fmt: skip
    archive = ProgramArchive(
        path="e.pt2", member="m", layout="pt2", facts=ExportedFacts(name="e"), document={}, weights=weights,
        constants=constants,
    )  # fmt: skip
    return judge_origin(OriginCase(package="p.pt2", archive=archive, contract=contract, stored=stored or {}))


@pytest.mark.parametrize(
    ("target", "called"),
    [
        ("aten.sort.stable", True),
        ("aten.sort.default", False),
        ("my.scale.default", True),
        ("aten.relu.default", False),
        ("odd", False),
    ],
)
def test_which_operators_the_package_calls(target, called):
    found, _ = judged()
    assert calls_operator(found[-1], target) is called


def tensor(dtype="float32", shape=(2,)):
    return StoredTensor(fqn="w", dtype=dtype, shape=shape)


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        (None, "not in the program under this name"),
        (tensor(shape=(3,)), "a different shape in the program's list ((2,), (3,))"),
        (tensor(dtype="int64"), "a different dtype in the program's list (float32, int64)"),
    ],
)
def test_why_a_constant_is_not_compared(theirs, reason):
    weights = {} if theirs is None else {"w": ArchivePayload(stored=theirs, member=None)}
    _, left_out = judged({"w": tensor()}, weights, {})
    assert f"content of w: {reason}" in [item.reason for item in left_out]


def test_lists_that_cannot_be_read_are_told_once():
    _, left_out = judged({"w": tensor()})
    lists = [item.reason for item in left_out if "the archive has no list" in item.reason]
    assert lists == [
        "content of the program's weights, the program's constants: the archive has no list of them that can be read"
    ]
    assert not [item for item in judged()[1] if "no list" in item.reason]
