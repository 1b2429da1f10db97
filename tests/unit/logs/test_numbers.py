"""Numbers that complain without a word: differences beside their tolerance, values that are none."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text


def told(text):
    _, diagnoses, reading = classify_text(text.encode(), "log")
    return diagnoses[0].cause if diagnoses else "unknown" if reading.unknown else None


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("step 1: loss 0.3\ntorch.compile: compiled 12 graphs, 0 graph breaks", None),
        ("max abs diff 12.5 between eager and compiled (tolerance 1e-3)", "numeric-difference"),
        ("max abs diff 1e-6 between eager and compiled (tolerance 1e-3)", None),
        (">>> out.dtype, out.isnan().any()\n(torch.float16, tensor(True, device='cuda:0'))", "nan-produced"),
        (">>> out.dtype, out.isnan().any()\n(torch.float16, tensor(False, device='cuda:0'))", None),
        ("torch 2.6\nunet output: 30351 / 30351 NaN values (100.0%)", "nan-produced"),
        ("torch 2.6\nunet output: 0 / 30351 NaN values (0.0%)", None),
        ("torch 2.6\n{'layer': 3, 'nan': 0, 'inf': 0, 'max': 12.5}", None),
        ("torch 2.6\nlogits: 12 NaN in 4096 values", "nan-produced"),
    ],
)
def test_numbers_beside_each_other_tell(text, cause):
    assert told(text) == cause or (cause == "unknown" and told(text) in ("memory-leak", "out-of-memory"))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("DEBUG Command exited with signal: Some(4)", "isa-mismatch"),
        ("python serve.py: Signal 11 caught in libtorch_cpu.so", "unknown"),
        ("ptxas exited with 255", "unknown"),
        ("the job exited with 0", None),
        ("step 100 done in 12 s, signal: 7 dB", None),
    ],
)
def test_an_ending_by_its_number_is_one(text, cause):
    assert told(text) == cause or (cause == "unknown" and told(text) is not None)


def test_stacks_of_threads_are_looked_at_where_something_hangs():
    stack = 'Thread 77 (idle): "MainThread"\n    wait (threading.py:359)\n    _next_data (torch/utils/data/dataloader.py:1524)\n'
    assert told(stack) == "model-hang"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("RuntimeError: Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions", "export-unsupported"),
        ("RuntimeError: Tracer cannot infer type of Foo(x=1)\n:Only tensors and (possibly nested) tuples of tensors (torch.jit)", "export-unsupported"),
        ("OSError: /opt/torch/lib/libgomp-1.so: cannot allocate memory in static TLS block (torch)", "missing-library"),
        ("torch: NCCL WARN Error: failed to extend /dev/shm/nccl-AU88OE to 9637892 bytes, error: No space left on device (28)", "tmpdir"),
        ("[E] IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Serialization assertion failed. Version tag does not match) torch", "artifact-layout"),
        ("x.cpp:1:10: fatal error: 'type_traits' file not found (torchinductor)", "toolchain-missing"),
        ("WeightsUnpickler error: Unsupported operand 60", "artifact-corrupt"),
    ],
)  # fmt: skip
def test_messages_of_a_family_have_its_cause(text, cause):
    assert told(text) == cause
