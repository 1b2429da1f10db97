"""What a GPU reports, wherever it is raised: the words of the message are the cause, not the place."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text

ACCESS, MEMORY, ASSERT = "cuda-illegal-access", "out-of-memory", "cuda-device-assert"
INDEX, ARCH, LAUNCH, DRIVER = "device-index", "gpu-arch-mismatch", "cuda-launch", "driver-mismatch"
# By message: the cause, or None where nobody can tell.
MESSAGES = {
    "RuntimeError: CUDA error: an illegal memory access was encountered": ACCESS,
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered": ACCESS,
    "RuntimeError: CUDA driver error: an illegal memory access was encountered": ACCESS,
    "RuntimeError: CUDA error 700: an illegal memory access was encountered": ACCESS,
    "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered": ACCESS,
    "RuntimeError: Triton Error [HIP]:  Code: 700, Messsage: an illegal memory access was encountered": ACCESS,
    "RuntimeError: HIP error: an illegal memory access was encountered": ACCESS,
    "RuntimeError: HIP error: hipErrorIllegalAddress": ACCESS,
    "RuntimeError: CUDA error: cudaErrorIllegalAddress": ACCESS,
    "RuntimeError: CUDA error 700": ACCESS,
    "RuntimeError: CUDA driver error: 700": ACCESS,
    "RuntimeError: CUDA error 716": ACCESS,
    "RuntimeError: CUDA error: an illegal instruction was encountered": ACCESS,
    "RuntimeError: CUDA error: unspecified launch failure": ACCESS,
    "RuntimeError: Triton Error [CUDA]: unspecified launch failure": ACCESS,
    "RuntimeError: CUDA error 719": ACCESS,
    "RuntimeError: CUDA error: misaligned address": ACCESS,
    "RuntimeError: Triton Error [CUDA]: misaligned address": ACCESS,
    "RuntimeError: CUDA error: out of memory": MEMORY,
    "RuntimeError: Triton Error [CUDA]: out of memory": MEMORY,
    "RuntimeError: CUDA driver error: 2": MEMORY,
    "RuntimeError: HIP error: hipErrorOutOfMemory": MEMORY,
    "RuntimeError: CUDA error: cudaErrorMemoryAllocation": MEMORY,
    "RuntimeError: CUDA error: device-side assert triggered": ASSERT,
    "RuntimeError: Triton Error [CUDA]: device-side assert triggered": ASSERT,
    "RuntimeError: CUDA error: cudaErrorAssert": ASSERT,
    "RuntimeError: CUDA error 710": ASSERT,
    "RuntimeError: HIP error: hipErrorAssert": ASSERT,
    "RuntimeError: CUDA error: invalid device ordinal": INDEX,
    "RuntimeError: CUDA error: cudaErrorInvalidDevice": INDEX,
    "RuntimeError: CUDA error 101": INDEX,
    "RuntimeError: CUDA error: no kernel image is available for execution on the device": ARCH,
    "RuntimeError: Triton Error [CUDA]: device kernel image is invalid": ARCH,
    "RuntimeError: CUDA error 209": ARCH,
    "RuntimeError: HIP error: hipErrorNoBinaryForGpu": ARCH,
    "RuntimeError: CUDA error: invalid argument": LAUNCH,
    "RuntimeError: Triton Error [CUDA]: invalid argument": LAUNCH,
    "RuntimeError: CUDA error: cudaErrorInvalidConfiguration": LAUNCH,
    "RuntimeError: CUDA error 701": LAUNCH,
    "RuntimeError: CUDA error: the launch timed out and was terminated": "model-hang",
    "RuntimeError: CUDA error: initialization error": "device-unavailable",
    "RuntimeError: CUDA driver error: initialization error": "device-unavailable",
    "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version": DRIVER,
    "RuntimeError: CUDA error: cudaErrorInsufficientDriver": DRIVER,
    "RuntimeError: CUDA error 35": DRIVER,
    "RuntimeError: CUDA error: uncorrectable ECC error encountered": None,
    "RuntimeError: CUDA error: unknown error": None,
}
# Frames below which they are raised: file and function.
PLACES = {
    "a wait": [("torch/cuda/__init__.py", "synchronize")],
    "an operator": [("torch/_ops.py", "__call__"), ("fastmoe/fused.py", "fused_experts")],
    "a kernel of Triton": [("triton/runtime/jit.py", "run"), ("triton/backends/nvidia/driver.py", "__call__")],
    "a driver of Triton": [("triton/runtime/driver.py", "_create_driver")],
    "a benchmark": [("torch/_inductor/runtime/triton_heuristics.py", "bench")],
    "a cache": [("torch/_inductor/codecache.py", "load")],
    "an interpreter": [("torch/fx/interpreter.py", "run_node")],
    "a trace": [("torch/_dynamo/utils.py", "run_node")],
    "a package": [("torch/_inductor/package/package.py", "__call__")],
    "a file": [("torch/serialization.py", "_load")],
    "a lowering": [("torch/_inductor/graph.py", "run")],
    "sizes": [("torch/fx/experimental/symbolic_shapes.py", "evaluate_expr")],
    "a copy": [("torch/storage.py", "cpu")],
}
# As they are pasted, by message: each goes one way, so that all together go all ways.
WAYS = (
    "{}",
    "    {}",
    "[rank0]: {}",
    "(EngineCore pid=77) ERROR 05-02 10:11:12 [core.py:88] {}",
    "  | 2026-02-03T05:56:27.270Z | (Worker pid=13) ERROR 02-03 05:56:27 worker.py:581] {}",
    "[2026-02-05 14:28:45,820] [ERROR] [MainThread] [serving.worker] >>> {}",
)


def told_in(place, message):
    frames = [("main.py", "<module>"), *PLACES[place]]
    lines = ["Traceback (most recent call last):"]
    for file, function in frames:
        lines += [f'  File "/opt/venv/lib/python3.11/site-packages/{file}", line 41, in {function}', "    go(x)"]
    return [*lines, message]


@pytest.mark.parametrize("place", PLACES, ids=PLACES)
def test_the_message_tells_more_than_the_place(place):
    others = {}
    for number, (message, cause) in enumerate(MESSAGES.items()):
        way = WAYS[(number + list(PLACES).index(place)) % len(WAYS)]
        text = "\n".join(way.format(line) for line in told_in(place, message)) + "\n"
        _, diagnoses, reading = classify_text(text.encode(), "log")
        found = diagnoses[0].cause if diagnoses else None
        assert diagnoses or reading.unknown
        if found != cause:
            others[message, way] = found
    assert others == {}


@pytest.mark.parametrize("text", ["CUDA error 2 times tried again", "CUDA errors: 2", "HIP error 700x"])
def test_a_number_is_one_of_an_error_only_where_it_stands_alone(text):
    _, diagnoses, _ = classify_text(f"{text}\nall done\n".encode(), "log")
    assert [one.cause for one in diagnoses] == []


def test_where_the_device_is_opened_an_error_without_a_name_says_that_it_cannot_be():
    text = told_in("a wait", "RuntimeError: CUDA error: unknown error")
    text = "\n".join(text).replace("in synchronize", "in _lazy_init")
    _, diagnoses, _ = classify_text(text.encode(), "log")
    assert [one.cause for one in diagnoses] == ["device-unavailable"]
