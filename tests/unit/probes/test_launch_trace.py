"""The launch trace: the kernel that fails first, on recorded outcomes (of simulated CUDA, none of hardware)."""

from __future__ import annotations

import pytest

from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.run import ChildError, Exited, Request, Signalled, TimedOut
from aotidoctor.probes import launch_trace
from tests.unit.probes.outcomes import case, history, node, outcome, raised
from tests.unit.probes.test_probes import OK, finding

FAULT = raised("CUDA error: an illegal memory access was encountered", type="AcceleratorError", stage="scan")
LAUNCH = {
    "symbol": "cuLaunchKernel",
    "kernel": "triton_poi_fused_addmm_relu_0",
    "number": 2,
    "run": 1,
    "grid": [16, 1, 1],
    "block": [128, 1, 1],
    "shared": 0,
}
LATER = {**LAUNCH, "kernel": "triton_poi_fused_addmm_mul_sigmoid_1", "number": 4, "grid": [64, 1, 1]}
MM = {"symbol": "aoti_torch_cuda_mm_out", "number": 3, "run": 1, "argument": 0}
ILLEGAL = {
    "code": 700,
    "name": "CUDA_ERROR_ILLEGAL_ADDRESS",
    "text": "an illegal memory access was encountered",
    "run": 1,
}
ABORT = Signalled(signal=6, name="SIGABRT")
RAISED = {
    "error": ChildError(type="RuntimeError", message="CUDA driver error: invalid argument"),
    "ending": Exited(code=1, done=True),
}


def traced(*, stage="run1", hooked=True, **more):
    told = {name: more.pop(name) for name in list(more) if name.startswith("launch_")}
    result = {"launch_trace": {"slots": 2}, **told} if hooked else told
    return outcome("launch_trace", stage=stage, result=result, **more)


def read(done):
    found = launch_trace.read(case(device="cuda", nodes=(node("zoo::first"),)), history(plain_run=FAULT), done)
    assert len(found) == 1
    return found[0]


def test_the_first_failing_kernel_is_named_and_not_the_last():
    item = read(
        traced(
            launch_failure={**ILLEGAL, "call": LAUNCH, "before": MM}, launch_last=LATER, launch_count=4,
            error=FAULT.error, ending=FAULT.ending,
        )
    )  # fmt: skip
    assert (item.kind, item.subject, item.severity) == ("kernel", "triton_poi_fused_addmm_relu_0", Severity.ERROR)
    assert item.facts["error"] == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert item.facts["symptom"] == "cuda-illegal-access"
    assert (item.facts["grid"], item.facts["block"]) == ((16, 1, 1), (128, 1, 1))
    assert item.facts["surfaces_at"] == "aoti_torch_cuda_mm_out"
    assert item.facts["operators"] == ("aten.addmm", "aten.relu")
    assert item.facts["tainted"] is False


@pytest.mark.parametrize(
    ("call", "kind", "subject"),
    [
        (MM, "extern", "aoti_torch_cuda_mm_out"),
        ({"symbol": "aoti_torch_proxy_executor_call_function", "argument": 0, "run": 1}, "custom", "zoo::first"),
        ({**LAUNCH, "kernel": None}, "kernel", "cuLaunchKernel"),
    ],
)
def test_work_that_libraries_and_operators_queue_is_theirs(call, kind, subject):
    item = read(traced(launch_failure={**ILLEGAL, "call": call, "before": None}, launch_count=4))
    assert (item.kind, item.subject) == (kind, subject)


def test_a_device_that_was_dead_before_the_call_blames_no_kernel():
    item = read(traced(launch_failure={**ILLEGAL, "call": None, "before": {"symbol": "", "run": 1}}))
    assert (item.kind, item.subject, item.severity) == ("before", None, Severity.WARN)


def test_an_abort_before_the_next_wait_is_the_fault_of_the_last_launch():
    """All before it had succeeded; with blocking launches or not, it may end in an abort instead of an exception."""
    said = "terminate called after throwing\n  what():  CUDA error: an illegal memory access was encountered\n"
    item = read(traced(launch_last=LAUNCH, ending=ABORT, stderr_tail=said))
    assert (item.kind, item.subject, item.severity) == ("kernel", LAUNCH["kernel"], Severity.ERROR)


def test_an_abort_of_another_kind_is_placed_with_care():
    item = read(traced(launch_last=LAUNCH, ending=ABORT, stderr_tail="free(): invalid pointer"))
    assert item.kind == "under-way"


def test_a_launch_that_is_refused_is_named_with_its_grid():
    last = {**LAUNCH, "grid": [0, 1, 1]}
    item = read(traced(launch_last=last, launch_count=2, **RAISED))
    assert (item.kind, item.subject, item.facts["grid"]) == ("refused", LAUNCH["kernel"], (0, 1, 1))
    assert "grid 0x1x1" in item.observed


def test_what_torch_raises_after_a_launch_that_worked_is_not_put_down_to_it():
    error = ChildError(type="RuntimeError", message="CUDA out of memory. Tried to allocate 2.00 GiB")
    item = read(traced(launch_last=LAUNCH, launch_count=2, error=error, ending=Exited(code=1, done=True)))
    assert (item.kind, item.severity) == ("under-way", Severity.INFO)


def test_a_kernel_that_cannot_be_loaded_is_not_the_one_before_it():
    loading = {"symbol": "cuModuleLoad", "kernel": "/tmp/x/missing.cubin", "run": 1}
    item = read(traced(launch_last=loading, launch_count=1, **RAISED))
    assert (item.kind, item.subject) == ("load", "/tmp/x/missing.cubin")


def test_a_kernel_that_does_not_end_is_the_one_that_is_waited_for():
    item = read(traced(launch_last=LAUNCH, ending=TimedOut(limit=5)))
    assert (item.kind, item.subject, item.severity) == ("hang", LAUNCH["kernel"], Severity.ERROR)


@pytest.mark.parametrize(
    ("done", "kind"),
    [
        (traced(stage="done", launch_count=4), "survived"),
        (traced(hooked=False, launch_problem={"text": "no slots to hook"}), "unavailable"),
        (traced(launch_problem={"code": 201, "name": "CUDA_ERROR_INVALID_CONTEXT", "text": ""}), "unavailable"),
        (traced(hooked=False, stage="load", ending=ABORT), "unavailable"),
        (traced(ending=ABORT), "not-entered"),
    ],
)
def test_what_was_not_seen_is_said(done, kind):
    assert read(done).kind == kind


@pytest.mark.parametrize(
    ("about", "plain", "findings", "expected"),
    [
        (case(device="cuda"), FAULT, (), None),
        (case(device="cuda"), outcome(ending=ABORT, stage="run1"), (), None),
        (case(), FAULT, (), "does not run on CUDA"),
        (case(device="cuda"), OK, (), "returned"),
        (case(device="cuda"), raised("CUDA error: no CUDA-capable device", stage="load"), (), "before a kernel"),
        (case(device="cuda"), raised("CUDA out of memory. Tried to allocate 2.00 GiB"), (), "cuda-oom"),
        (case(device="cuda"), raised("input_handles[0]: unmatched dtype, expected: 6(at::kFloat), but got: 3"), (), "check-"),
        (case(device="cuda"), FAULT, (finding("AD-IN-003"),), "AD-IN-003 already explains it"),
        (case(device="cuda"), FAULT, (finding("AD-RUN-003", "raised", symptom="check-dtype"),), "AD-RUN-003 already explains"),
        (case(device="cuda"), FAULT, (finding("AD-RUN-003", "raised", symptom="cuda-illegal-access"),), None),
        (case(device="cuda"), FAULT, (finding("AD-RUN-022", "index", kernel="triton_poi_fused_add_0"),), "AD-RUN-022"),
        (case(device="cuda", localize=True), FAULT, (finding("AD-IN-003"),), None),
    ],
)  # fmt: skip
def test_it_is_asked_where_it_can_tell(about, plain, findings, expected):
    plan = launch_trace.plan(about, history(*findings, plain_run=plain))
    if expected is None:
        assert isinstance(plan, Request)
        assert plan.fresh
        assert plan.payload.launch_trace is True
    else:
        assert isinstance(plan, NotChecked)
        assert expected in plan.reason


BLAS = "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(handle, opa, opb, m, n, k)`"


@pytest.mark.parametrize(
    ("call", "more", "kind", "severity"),
    [
        # Waited for before and after: nobody else's fault came out in the library.
        (MM, {"launch_count": 3}, "library", Severity.ERROR),
        # It ended before it could be asked afterwards.
        (MM, {}, "under-way", Severity.INFO),
        (LAUNCH, {"launch_count": 3}, "under-way", Severity.INFO),
    ],
)
def test_a_library_that_cannot_do_its_work_with_the_device_alive(call, more, kind, severity):
    said = raised(BLAS)
    item = read(traced(launch_last=call, error=said.error, ending=said.ending, **more))
    assert (item.kind, item.severity, item.facts["symptom"]) == (kind, severity, "gpu-library")


def test_a_library_in_which_an_earlier_fault_comes_out_is_not_blamed():
    said = raised(BLAS)
    item = read(
        traced(
            launch_failure={**ILLEGAL, "call": LAUNCH, "before": MM}, launch_last=MM, launch_count=3,
            error=said.error, ending=said.ending,
        )
    )  # fmt: skip
    assert (item.kind, item.subject) == ("kernel", "triton_poi_fused_addmm_relu_0")
