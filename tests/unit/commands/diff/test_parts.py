"""Each fact of each part: what it is called, what it weighs, and which playbook speaks of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.commands.diff.document_values import DIFFERENCE_RULES
from aotidoctor.model.case import Gpu, MissingSymbol, TmpdirState, TorchBuild
from aotidoctor.model.contract import Dim
from aotidoctor.model.inputs import PlainValue, ValueStats
from aotidoctor.model.report import playbook_file
from tests.unit.commands.diff.documents import compared, rule_of, told
from tests.unit.reports import builders

HEALTHY = builders.healthy()


def with_host(**more):
    return replace(HEALTHY, case=replace(HEALTHY.case, host=replace(builders.HOST, **more)))


def with_contract(**more):
    artifact = replace(builders.ARTIFACT, sha256="2" * 64)
    contract = replace(builders.CONTRACT, **more)
    return replace(HEALTHY, case=replace(HEALTHY.case, contract=contract, artifact=artifact))


def with_inputs(**more):
    return replace(HEALTHY, case=replace(HEALTHY.case, inputs=builders.inputs(**more)))


def gpu(capability="90", **more):
    return Gpu(index=0, name="NVIDIA H100", compute_capability=capability, **more)


def test_every_playbook_exists():
    assert {
        rule.playbook for rule in DIFFERENCE_RULES.values() if rule.playbook and playbook_file(rule.playbook) is None
    } == set()


def test_a_report_is_like_itself():
    found = compared(HEALTHY, HEALTHY)
    assert found.differences == ()
    assert found.unknown == ("package: values of the weights (no checksums on both sides)",) or not found.unknown
    assert found.equal["host"] > 20
    assert found.equal["inputs"] > 20


@pytest.mark.parametrize(
    ("host", "subject", "level", "playbook"),
    [
        ({"machine": "aarch64"}, "machine", "decisive", "platform-mismatch"),
        ({"torch": TorchBuild(version="2.9.1+cpu", path="/x")}, "torch release", "decisive", "abi-mismatch"),
        ({"torch": TorchBuild(version="2.13.1+cpu", path="/x")}, "torch build", "relevant", "abi-mismatch"),
        (
            {"torch": TorchBuild(version="2.13.0+cpu", path="/x", cuda="12.8")},
            "CUDA of torch",
            "decisive",
            "driver-mismatch",
        ),
        (
            {"torch": TorchBuild(version="2.13.0+cpu", path="/x", cxx11_abi=False)},
            "CXX11 ABI of torch",
            "decisive",
            "abi-mismatch",
        ),
        ({"torch": None}, "torch", "decisive", "toolchain-missing"),
        ({"gpus": (gpu(),)}, "GPUs", "decisive", "device-unavailable"),
        ({"cuda_driver": "550.54"}, "CUDA driver", "relevant", "driver-mismatch"),
        ({"glibc": "2.28"}, "glibc", "relevant", "abi-mismatch"),
        ({"libraries": {"libtorch_cpu.so": None}}, "libtorch_cpu.so", "decisive", "missing-library"),
        ({"missing_symbols": (MissingSymbol(name="f"),)}, "missing symbols", "decisive", "abi-mismatch"),
        ({"threads": 8}, "threads", "relevant", "threads-exceed-build"),
        ({"memory_total": 2 * 1024**3}, "memory", "relevant", "out-of-memory"),
        ({"openmp_runtimes": ("/a/libiomp5.so",)}, "OpenMP runtimes", "relevant", "openmp-conflict"),
        ({"tmpdir": TmpdirState(path="/tmp", noexec=True)}, "temporary folder: noexec", "decisive", "tmpdir"),
        ({"tools": {"g++": None, "gdb": None}}, "C++ compiler", "relevant", "toolchain-missing"),
        ({"tools": {"g++": "/usr/bin/g++", "gdb": "/usr/bin/gdb"}}, "gdb", "minor", None),
        ({"environment": {"OMP_NUM_THREADS": "8"}}, "OMP_NUM_THREADS", "relevant", "threads-exceed-build"),
        (
            {"environment": {"OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": ""}},
            "CUDA_VISIBLE_DEVICES",
            "relevant",
            "device-unavailable",
        ),
        (
            {"environment": {"OMP_NUM_THREADS": "2", "PYTORCH_CUDA_ALLOC_CONF": "x"}},
            "PYTORCH_CUDA_ALLOC_CONF",
            "relevant",
            "out-of-memory",
        ),
        (
            {"environment": {"OMP_NUM_THREADS": "2", "AOTI_RUNTIME_CHECK_INPUTS": "1"}},
            "AOTI_RUNTIME_CHECK_INPUTS",
            "relevant",
            "load-api",
        ),
        ({"environment": {"OMP_NUM_THREADS": "2", "CC": "gcc"}}, "CC", "minor", None),
        ({"python": "3.12.1"}, "Python", "minor", None),
        ({"cpu_model": "Another"}, "CPU", "minor", None),
    ],
)
def test_hosts(host, subject, level, playbook):
    found = compared(HEALTHY, with_host(**host))
    assert rule_of(found, subject) == (level, playbook)


def test_gpus_of_both():
    one, two = with_host(gpus=(gpu(),)), with_host(gpus=(gpu("80"), gpu("80")))
    found = compared(one, two)
    assert told(found) == {"host: compute capability": ("sm_90", "sm_80"), "host: number of GPUs": ("1", "2")}
    assert rule_of(found, "compute capability") == ("decisive", "gpu-arch-mismatch")


def test_instructions_weigh_what_the_package_needs_of_them():
    less = builders.HOST.cpu_flags - {"avx512f"}
    needs = replace(builders.CONTRACT.needs, isa=("avx512f",))
    contract = replace(builders.CONTRACT, needs=needs)
    here, there = (
        replace(one, case=replace(one.case, contract=contract)) for one in (HEALTHY, with_host(cpu_flags=less))
    )
    found = compared(here, there)
    assert told(found) == {"host: instructions the package needs": ("has avx512f", "without")}
    assert rule_of(found, "instructions the package needs") == ("decisive", "isa-mismatch")
    assert rule_of(compared(HEALTHY, with_host(cpu_flags=less)), "vector instructions")[0] == "relevant"


def test_what_differs_without_meaning_is_left_out_and_counted():
    other = with_host(
        tools={"g++": "/opt/bin/g++", "gdb": None},
        memory_available=1,
        torch=replace(builders.HOST.torch, path="/elsewhere/torch"),
        cpu_flags=builders.HOST.cpu_flags | {"pni"},
        environment={"OMP_NUM_THREADS": "2", "PATH": "/x", "TORCHINDUCTOR_CACHE_DIR": "/x"},
    )
    found = compared(HEALTHY, replace(other, started="2026-02-02T02:02:02Z", seconds=9.0))
    assert found.differences == ()
    assert found.left_out == {
        "paths": 2,
        "free memory and disk": 1,
        "variables of paths and terminals": 2,
        "CPU flags without vector instructions": 1,
        "times": 2,
    }


X = builders.X


@pytest.mark.parametrize(
    ("leaf", "subject", "level", "playbook"),
    [
        (replace(X, dtype="float16"), "args[0]: dtype", "decisive", "input-dtype"),
        (replace(X, device_type="cuda"), "args[0]: device", "decisive", "input-device"),
        (replace(X, kind="constant"), "args[0]: kind", "decisive", "input-nontensor"),
        (replace(X, rank=3), "args[0]: rank", "decisive", "input-rank"),
        (replace(X, strides=(1, 64)), "args[0]: strides", "decisive", "input-stride"),
        (replace(X, dims=(Dim(min=2, max=32), Dim(static=16))), "args[0]: dim 0: range", "decisive", "input-range"),
        (replace(X, dims=(Dim(min=2, max=64), Dim(static=32))), "args[0]: dim 1", "decisive", "input-shape"),
        (replace(X, dims=(Dim(static=4), Dim(static=16))), "args[0]: dim 0", "decisive", "input-shape"),
        (replace(X, path="args[7]"), "args[0]", "decisive", "input-tree"),
    ],
)
def test_leaves_of_contracts(leaf, subject, level, playbook):
    found = compared(HEALTHY, with_contract(leaves=(leaf, *builders.CONTRACT.leaves[1:])))
    assert rule_of(found, subject) == (level, playbook)


def test_a_keyword_that_is_not_there():
    found = compared(HEALTHY, with_contract(leaves=builders.CONTRACT.leaves[:2]))
    assert rule_of(found, "kwargs['ids']") == ("decisive", "input-kwargs")
    assert told(found)["package: kwargs['ids']"] == ("there", "missing")


def test_constants_kernels_and_needs():
    first, second = builders.CONTRACT.constants
    needs = replace(builders.CONTRACT.needs, torch_version="2.9.0", compute_capability="80", random_ops=("aten.rand",))
    other = with_contract(
        constants=(replace(first, shape=(8, 32)), replace(second, original_fqn="emb2.weight")),
        kernels=(*builders.CONTRACT.kernels, replace(builders.CONTRACT.kernels[1], name="cpp_fused_add_7")),
        custom_ops=("zoo::scale",),
        needs=needs,
        weights="mmap",
    )
    found = compared(HEALTHY, other)
    said = told(found)
    assert said["package: l.weight: shape"] == ("(8, 16)", "(8, 32)")
    assert said["package: constants"] == ("also emb.weight", "also emb2.weight")
    assert said["package: cpp_fused_add"] == ("without", "called")
    assert said["package: custom operators"] == ("without", "also zoo::scale")
    assert said["package: torch version"] == ("2.13.0", "2.9.0")
    assert rule_of(found, "compute capability") == ("decisive", "gpu-arch-mismatch")
    assert rule_of(found, "random operators") == ("relevant", "nondeterministic")
    assert rule_of(found, "weights") == ("relevant", "weights-not-loaded")
    assert rule_of(found, "constants") == ("decisive", "weights-mismatch")


def test_the_number_of_a_kernel_is_the_compilers():
    kernels = tuple(replace(one, name=one.name.replace("_0", "_3")) for one in builders.CONTRACT.kernels)
    assert [item.subject for item in compared(HEALTHY, with_contract(kernels=kernels)).differences] == ["sha256"]


@pytest.mark.parametrize(
    ("given", "subject", "level", "playbook"),
    [
        (builders.tensor("float64"), "args[0]: dtype", "decisive", "input-dtype"),
        (builders.tensor(device="cuda:0"), "args[0]: device", "decisive", "input-device"),
        (builders.tensor(layout="sparse_coo"), "args[0]: layout", "decisive", "input-layout"),
        (builders.tensor(shape=(8, 16)), "args[0]: shape", "relevant", "input-shape"),
        (builders.tensor(shape=(4, 1, 16), stride=(16, 16, 1)), "args[0]: shape", "decisive", "input-rank"),
        (builders.tensor(stride=(1, 4)), "args[0]: strides", "decisive", "input-stride"),
        (builders.tensor(conj=True), "args[0]: conj", "decisive", "input-lazy-bit"),
        (builders.tensor(requires_grad=True), "args[0]: requires_grad", "minor", None),
        (builders.tensor(storage_offset=8), "args[0]: storage offset", "minor", "input-stride"),
        (PlainValue(type="int", text="1"), "args[0]: kind", "decisive", "input-nontensor"),
    ],
)
def test_inputs(given, subject, level, playbook):
    assert rule_of(compared(HEALTHY, with_inputs(x=given)), subject) == (level, playbook)


def test_values_of_integers_and_memory_that_is_shared():
    def ids(high, storage):
        return builders.tensor(
            "int64", (4,), (1,), stats=ValueStats(low=0, high=high, nan=0, inf=0, zeros=1), storage=storage
        )

    one = with_inputs(ids=ids(9, "1"), x=builders.tensor(storage="0"))
    two = with_inputs(ids=ids(100, "0"), x=builders.tensor(storage="0"))
    found = compared(one, two)
    assert told(found)["inputs: kwargs['ids']: lowest and highest"] == ("(0, 9)", "(0, 100)")
    assert rule_of(found, "kwargs['ids']: lowest and highest") == ("relevant", "index-out-of-range")
    assert rule_of(found, "tensors that share memory") == ("relevant", "input-alias")


def test_strides_of_another_shape_are_compared_by_their_order():
    found = compared(HEALTHY, with_inputs(x=builders.tensor(shape=(8, 16), stride=(16, 1))))
    assert [item.subject for item in found.differences] == ["args[0]: shape"]
    found = compared(HEALTHY, with_inputs(x=builders.tensor(shape=(8, 16), stride=(1, 8))))
    assert told(found)["inputs: args[0]: strides"] == ("contiguous", "other")


def test_what_only_one_side_knows_is_no_difference():
    found = compared(HEALTHY, with_host(glibc=None))
    assert found.differences == ()
    assert "host: glibc (only A records it: 2.36)" in found.unknown
