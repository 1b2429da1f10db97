"""Whose failure it is: what any program may print is taken at its word beside a sign of torch only."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text
from tests.every import every


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


# Programs that share words with torch, next to a folder that its owner named after it.
OTHERS = (
    "java.lang.OutOfMemoryError: Java heap space\n\tat java.util.Arrays.copyOf(Arrays.java:3332)",
    "java.lang.UnsatisfiedLinkError: libz.so.1: cannot open shared object file: No such file or directory",
    "error: linking with `cc` failed: exit status: 1\n  = note: /usr/bin/ld: cannot find -lssl",
    "main.cpp:(.text+0x1d): undefined reference to `foo::bar(int)'",
    'error LNK2019: unresolved external symbol "void __cdecl foo(int)"',
    "main.c:1:10: fatal error: openssl/ssl.h: No such file or directory",
    "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
    "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,)",
    "kernel: Out of memory: Killed process 999 (chrome) total-vm:123kB",
    "./game: version `GLIBCXX_3.4.29' not found (required by ./game)",
    "bash: ./app: cannot execute binary file: Exec format error",
    "xcrun: error: invalid active developer path",
    "Error: Out of memory in CUDA queue copy_to_device (integrator_state)",
    "nvcc fatal   : Unsupported gpu architecture 'compute_90'",
    'psql: error: connection to server failed: FATAL: password authentication failed for user "u"',
)
FOLDERS = (
    "/home/u/aoti-models/run.sh\n{}\n", "cd ~/pytorch-experiments && ./build\n\n{}\n", "cwd: D:\\work\\inductor\n{}\n",
)  # fmt: skip


@every("folder", FOLDERS)
@every("text", OTHERS)
def test_the_name_of_a_folder_is_no_sign(text, folder):
    assert all(sure < 0.5 for _, sure in told(folder.format(text)))


@pytest.mark.parametrize(
    "place",
    [
        '  File "/home/u/pytorch/torch/_inductor/graph.py", line 3, in run',
        "/opt/venv/lib/python3.12/site-packages/torch/include/ATen/ATen.h:3:1: note: here",
        "loading /home/u/models/model.pt2",
        "cd /tmp/torchinductor_u/ab",
        "C:\\venv\\Lib\\site-packages\\torch\\lib\\c10.dll",
    ],
)
def test_a_file_of_torch_is_one(place):
    assert any(sure >= 0.5 for _, sure in told(f"{place}\nmain.cpp:(.text+0x1c0): undefined reference to `frobnicate'"))
