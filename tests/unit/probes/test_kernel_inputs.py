"""What the failing kernel is handed, held against the contract."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.localize.comparison import kernel_inputs
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.probes.kernel_inputs import plan, read
from aotidoctor.probes.probe import History, Reuse
from tests.unit.localize.kernels import case_of, floats, integers
from tests.unit.probes.outcomes import outcome, raised

INDEX, RELU = "triton_poi_fused_add_index_0", "triton_poi_fused_addmm_relu_0"
FAILED = raised("CUDA error: an illegal memory access was encountered")


def gpu(tensor, **changes):
    return replace(tensor, device="cuda:0", **changes)


def named(kernel, code="AD-RUN-026", kind="kernel"):
    return Evidence(code=code, kind=kind, severity=Severity.ERROR, subject=kernel, observed="", expected="")


def asked(case, *findings, run=FAILED):
    history = History(outcomes={"plain_run": run}, findings=findings)
    answer = plan(case, history)
    return answer if isinstance(answer, NotChecked) else read(case, history, run)


def test_inputs_that_fit():
    case = case_of("cuda_index", gpu(integers(1, 2, 3)), gpu(floats(3, 8)))
    (found,) = asked(case, named(INDEX))
    assert (found.kind, found.severity, found.subject) == ("fits", Severity.INFO, INDEX)
    assert found.observed == "in_ptr0 (*i64) = args[0]; in_ptr1 (*fp32) = table; in_ptr2 (*fp32) = args[1]"
    assert (found.facts["inputs"], found.facts["constants"]) == (("args[0]", "args[1]"), ("table",))


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (gpu(integers(1, 2, 3, dtype="int32")), "dtype int32, expected int64"),
        (integers(1, 2, 3), "device cpu, expected cuda"),
        (gpu(integers(1, 2, 3, 4)), "shape[0] 4, expected 3"),
        (gpu(integers(1, 2, 3, shape=(3, 1))), "2 dims, expected 1"),
        (gpu(integers(1, 2, 3, stride=(2,))), "strides (2,), expected (1,)"),
    ],
)
def test_an_input_that_does_not_fit(tensor, said):
    (found,) = asked(case_of("cuda_index", tensor, gpu(floats(3, 8))), named(INDEX))
    assert (found.kind, found.facts["wrong"]) == ("differs", ("args[0]",))
    assert f"args[0], which does not fit: {said}" in found.observed


def test_a_buffer_is_named_by_who_wrote_it():
    found = kernel_inputs(case_of("cuda_printer", gpu(floats(8, 16))), RELU)
    assert [(one.source, one.name) for one in found] == [
        ("buffer", "what aoti_torch_cuda_mm_out wrote"),
        ("constant", "l1.bias"),
    ]


def test_a_shim_that_is_handed_an_input():
    case = case_of("cuda_printer", gpu(floats(2000, 16)))
    first = next(one for one in kernel_inputs(case, "aoti_torch_cuda_mm_out") if one.source == "input")
    assert (first.name, first.differs) == ("args[0]", ("shape[0] 2000, expected 2..1024",))


def test_the_surest_name_counts():
    case = case_of("cuda_printer", gpu(floats(8, 16)))
    last = named("triton_poi_fused_addmm_mul_sigmoid_1", code="AD-RUN-024")
    assert asked(case, last, named(RELU))[0].subject == RELU


@pytest.mark.parametrize(
    ("findings", "run", "reason"),
    [
        ((named(INDEX),), outcome(outputs=[[{}]]), "no run failed"),
        ((named("zoo::op"),), FAILED, "no kernel"),
        ((), FAILED, "no kernel"),
    ],
)
def test_not_asked(findings, run, reason):
    case = case_of("cuda_index", gpu(integers(1, 2, 3)), gpu(floats(3, 8)))
    assert reason in asked(case, *findings, run=run).reason


def test_it_takes_no_run():
    case = case_of("cuda_index", gpu(integers(1, 2, 3)), gpu(floats(3, 8)))
    history = History(outcomes={"plain_run": FAILED}, findings=(named(INDEX),))
    assert plan(case, history) == Reuse(probe="plain_run")
