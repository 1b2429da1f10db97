"""What a failed CUDA run says → its cause, what it looked like, and what there is to do.

The texts are those of simulated CUDA (PyTorch 2.13 under a driver that injects the error), of PyTorch's sources, and of
public reports. None was seen on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.diagnosis.treatments import plan_treatment
from aotidoctor.model.artifact import Metadata
from aotidoctor.model.run import Signalled
from aotidoctor.probes import blame, plain_run
from aotidoctor.probes.probe import History, Reuse
from tests.unit.localize.kernels import case_of, floats, integers
from tests.unit.probes.outcomes import outcome, raised

KERNEL = "triton_poi_fused_add_index_0"
CALL = "run_func_( container_handle_, input_handles.data(), input_handles.size(), output_handles.data() ) API call failed at "
RUN = CALL + "/pytorch/torch/csrc/inductor/aoti_runner/model_container_runner.cpp, line 167"
CREATE = "create_func_( &container_handle_, num_models, device_str.c_str() ) API call failed at /x/model_container_runner.cpp, line 129"
OOM = (
    "Error: aoti_torch_cuda_mm_out(buf0, arg4_1, wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(l1_weight, 2, "
    "int_array_2, int_array_3, 0L))) API call failed at /tmp/t/c3rekh.wrapper.cpp, line 1103\n"
)
CUDA = (Metadata(member="a.wrapper_metadata.json", values={"AOTI_DEVICE_KEY": "cuda"}),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The exception and stderr of a run in ``stage``; the cause it must get."""

    cause: str
    message: str
    stderr: str = ""
    type: str = "RuntimeError"
    stage: str = "run1"


MESSAGES = {
    "illegal access, waiting": Said(
        cause="cuda-illegal-access",
        type="AcceleratorError",
        message="CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported",
        stage="scan",
        stderr="Failed to free GPU memory in AOTInductor model: an illegal memory access was encountered\n",
    ),
    "illegal access, at the launch": Said(
        cause="cuda-illegal-access", message="CUDA driver error: an illegal memory access was encountered"
    ),
    "misaligned": Said(
        cause="cuda-illegal-access", message=RUN, stderr="Error: CUDA driver error: misaligned address\n"
    ),
    "device assert without its text": Said(
        cause="cuda-device-assert",
        type="AcceleratorError",
        message="CUDA error: device-side assert triggered",
        stage="scan",
    ),
    "no image": Said(
        cause="gpu-arch-mismatch",
        message="CUDA driver error: no kernel image is available for execution on the device",
        stderr="Device information mismatch for AOTI_COMPUTE_CAPABILITY: 80 vs 90\n",
    ),
    "cubin missing": Said(cause="gpu-arch-mismatch", message=RUN, stderr="Error: CUDA driver error: file not found\n"),
    "invalid argument": Said(cause="cuda-launch", message=RUN, stderr="Error: CUDA driver error: invalid argument\n"),
    "invalid configuration": Said(cause="cuda-launch", message="CUDA driver error: invalid configuration argument"),
    "resources": Said(cause="cuda-launch", message="CUDA driver error: too many resources requested for launch"),
    "invalid argument at load": Said(
        cause="load-device", message=CREATE, stderr="Error: CUDA error: invalid argument\n", stage="load"
    ),
    "out of memory": Said(
        cause="out-of-memory",
        type="OutOfMemoryError",
        message="CUDA out of memory. Tried to allocate 32.00 MiB. GPU 0 has a total capacity of 1.00 GiB",
        stderr=OOM,
    ),
    "out of memory in a generic message": Said(
        cause="out-of-memory", message=RUN, stderr=f"Error: CUDA out of memory. Tried to allocate 32.00 MiB.\n{OOM}"
    ),
    "out of memory in cuBLAS": Said(
        cause="out-of-memory", message="CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    ),
    "host memory": Said(
        cause="mixed-device",
        message=RUN,
        stderr="Error: The specified pointer resides on host memory and is not registered with any CUDA device.\n",
    ),
    "guard of another device": Said(
        cause="mixed-device", message=RUN, stderr="Error: CUDAGuardImpl initialized with non-CUDA DeviceType: cpu\n"
    ),
    "capture": Said(
        cause="cuda-graph-capture", message=RUN, stderr="Error: operation not permitted when stream is capturing\n"
    ),
    "capture, legacy stream": Said(
        cause="cuda-graph-capture",
        message="CUDA error: operation would make the legacy stream depend on a capturing blocking stream",
    ),
    "no such device": Said(cause="device-index", message="CUDA error: invalid device ordinal", stage="load"),
    "driver too old": Said(
        cause="driver-mismatch",
        message=CREATE,
        stderr="Error: CUDA error: CUDA driver version is insufficient for CUDA runtime version\n",
        stage="load",
    ),
    "driver too old, Python": Said(
        cause="driver-mismatch",
        message="The NVIDIA driver on your system is too old (found version 11040).",
        stage="load",
    ),
    "no GPU": Said(
        cause="device-unavailable",
        message=CREATE,
        stderr="Error: CUDA error: no CUDA-capable device is detected\n",
        stage="load",
    ),
    "stub library": Said(
        cause="device-unavailable",
        message=CREATE,
        stderr="Error: CUDA error: CUDA driver is a stub library\n",
        stage="load",
    ),
    "no library": Said(
        cause="device-unavailable",
        message="Error in dlopen: libcuda.so.1: cannot open shared object file: No such file or directory",
        stage="load",
    ),
}


def gpu(tensor):
    return replace(tensor, device="cuda:0")


def indexed(*values):
    return case_of("cuda_index", gpu(integers(*values)), gpu(floats(3, 8)), metadata=CUDA)


def found_in(case, run):
    """The findings of the plain run and of the blame probe, with ids."""
    first = plain_run.read(case, History(), run)
    history = History(outcomes={"plain_run": run}, findings=tuple(first))
    more = blame.read(case, history, run) if blame.plan(case, history) == Reuse(probe="plain_run") else []
    return [replace(item, id=f"E{at}") for at, item in enumerate((*first, *more))]


def diagnosed(case, run):
    return diagnose(found_in(case, run), load_playbooks(), case=case)[0]


@pytest.mark.parametrize("name", MESSAGES)
def test_the_cause_of_a_message(name):
    said = MESSAGES[name]
    run = raised(said.message, type=said.type, stage=said.stage, stderr_tail=said.stderr)
    diagnosis = diagnosed(indexed(3, 4, 5), run)
    assert diagnosis.cause == said.cause
    # What it looked like is what the user saw, in the user's words.
    assert diagnosis.looked_like
    assert "{" not in diagnosis.title + diagnosis.remedy.text


def test_out_of_memory_names_the_operator():
    run = raised(RUN, stderr_tail=f"Error: CUDA out of memory. Tried to allocate 32.00 MiB.\n{OOM}")
    facts = found_in(indexed(3, 4, 5), run)[0].facts
    assert (facts["kernel"], facts["wrapper_line"]) == ("aoti_torch_cuda_mm_out", 1103)


def test_a_fault_is_not_blamed_on_the_call_that_reported_it():
    run = raised(RUN, stderr_tail=f"Error: CUDA error: an illegal memory access was encountered\n{OOM}")
    facts = found_in(indexed(3, 4, 5), run)[0].facts
    assert (facts["shim"], facts.get("kernel")) == ("aoti_torch_cuda_mm_out", None)


LINES = "".join(
    f"/tmp/t/ct5jt25b.py:32: unknown: block: [0,0,0], thread: [{at},0,0] Assertion `index out of bounds: 0 <= tmp4 < 40` "
    "failed.\n"
    for at in range(8, 16)
)
ENDINGS = {
    "raised": raised(
        "CUDA error: device-side assert triggered", type="AcceleratorError", stage="scan", stderr_tail=LINES
    ),
    "aborted": outcome(
        ending=Signalled(signal=6, name="SIGABRT"),
        stage="run1",
        stderr_tail=f"{LINES}terminate called after throwing an instance of 'c10::AcceleratorError'\n"
        "  what():  CUDA error: device-side assert triggered\n",
    ),
    "generic": raised(RUN, stderr_tail=f"{LINES}Error: CUDA error: device-side assert triggered\n"),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_a_device_assert_leads_to_the_element(how):
    case = indexed(3, 40, 5)
    found = found_in(case, ENDINGS[how])
    assert (found[0].facts["symptom"], found[0].facts["bound"], found[0].facts["device_line"]) == (
        "cuda-assert",
        "40",
        32,
    )
    assert (
        found[1].observed == f"{KERNEL}: index 40 of 40 ← args[0][1] = 40; bound from table.shape[0]; from aten.index"
    )
    diagnosis = diagnosed(case, ENDINGS[how])
    assert (diagnosis.cause, diagnosis.subject, diagnosis.confidence) == ("cuda-device-assert", "args[0]", 0.95)
    assert diagnosis.title == (
        f"a device-side assertion failed in {KERNEL}: args[0][1] = 40 is not in 0..39 (table.shape[0])"
    )
    assert diagnosis.remedy.text.startswith("Correct args[0][1], or make table.shape[0] larger")


def test_the_treatment_of_a_device_assert_clamps_that_input():
    case = indexed(3, 40, 5)
    plan = plan_treatment("cuda-device-assert", case, found_in(case, ENDINGS["raised"]))
    assert plan.steps == ({"op": "clamp_values", "path": "args[0]", "low": 0, "high": 39},)


def test_without_the_text_of_the_assertion_nothing_is_blamed_or_treated():
    case = indexed(3, -1, 5)
    found = found_in(case, raised("CUDA error: device-side assert triggered", type="AcceleratorError", stage="scan"))
    assert [item.code for item in found] == ["AD-RUN-001"]
    assert plan_treatment("cuda-device-assert", case, found) is None


def test_a_wrong_dtype_explains_the_assertion():
    """A static finding about the index's own input comes before what the kernel made of it."""
    case = indexed(3, 40, 5)
    found = found_in(case, ENDINGS["raised"])
    wrong = replace(found[0], id="E9", code="AD-IN-010", kind="dtype", subject="args[0]", facts={"path": "args[0]"})
    assert diagnose([*found, wrong], load_playbooks(), case=case)[0].cause == "input-dtype"
