"""Whose failure it is: what any program may print is taken at its word beside a sign of torch only."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text


def told(text):
    _, diagnoses, reading = classify_text(text.encode(), "log")
    assert diagnoses or reading.unknown
    return [(one.cause, one.confidence) for one in diagnoses]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("PermissionError: [Errno 13] Permission denied: '/tmp/renderer/x'", "tmpdir"),
        ("a.cpp:3: warning: unused\nc++: fatal error: Killed signal terminated program cc1plus", "killed"),
        ("main.cpp:(.text+0x1c0): undefined reference to `frobnicate'", "undefined-symbol-link"),
        ("$ ./renderer\nIllegal instruction (core dumped)", "isa-mismatch"),
    ],
)
def test_without_a_sign_of_torch_it_is_a_low_suspicion(text, cause):
    [(found, sure)] = told(text)
    assert found == cause
    assert sure < 0.5
    [(found, sure), *_] = told(f"import torch\n{text}")
    assert found == cause
    assert sure >= 0.5


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\nIllegal instruction (core dumped)",
        "ggml_backend_cuda_buffer: failed\nCUDA error: out of memory\n  current device: 0",
        "npm ERR! build\nPermissionError: [Errno 13] Permission denied: '/tmp/npm-1'",
        "ggml_vulkan: Device memory allocation of size 1204 failed.\nggml_vulkan: ErrorOutOfDeviceMemory",
    ],
)
def test_beside_a_sign_of_another_program_it_has_no_cause(text):
    assert told(text) == []


def test_two_openmp_runtimes_are_two_whoever_loads_them():
    [(cause, sure)] = told("tensorflow 2.15\nOMP: Error #15: Initializing libiomp5md.dll, but found it initialized.")
    assert (cause, sure >= 0.5) == ("openmp-conflict", True)


def test_a_rate_that_is_infinite_is_no_failure():
    _, diagnoses, reading = classify_text(
        b"eval time = 0.00 ms / 1 runs ( 0.00 ms per token, inf tokens per second)", "x"
    )
    assert (diagnoses, reading.unknown) == ((), ())


def test_an_infinite_number_in_brackets_is_no_level():
    [(cause, _)] = told('"eager" output: tensor(3.)\n"inductor" output: tensor(inf)')
    assert cause in ("numeric-difference", "overflow")
