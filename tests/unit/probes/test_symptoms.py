"""Real messages of PyTorch 2.13, its runtime and the loader → symptom and facts."""

from __future__ import annotations

import pytest

from aotidoctor.probes.symptoms import compiler_symptom, recognise
from tests.every import every

MESSAGES = [
    ("input_handles[0]: unmatched dtype, expected: 4(at::kLong), but got: 3", "check-dtype", {"index": "0"}),
    (
        "input_handles[2]: dim value is too small at 0, expected it to be >= 2, but got: 1",
        "check-low",
        {"index": "2", "dim": "0", "wanted": "2", "got": "1"},
    ),
    ("input_handles[0]: dim value is too large at 0, expected to be <= 64, but got: 200", "check-high", {"got": "200"}),
    ("input_handles[1]: unmatched dim value at 1, expected: 16, but got: 17", "check-dim", {"dim": "1", "got": "17"}),
    ("input_handles[0]: unmatched stride value at 0, expected: 16, but got: 32", "check-stride", {"wanted": "16"}),
    ("input_handles[0]: unmatched device type, expected: 00(cpu), but got: 14", "check-device", {"wanted": "cpu"}),
    (
        "expected size 16==8, stride 1024==1024 at dim=0\nError in op: input\nThis error most often comes from a "
        "incorrect fake (aka meta) kernel",
        "check-input-relation",
        {},
    ),
    (
        "expected size 16==16, stride 1==16 at dim=0\nError in op: torch.ops.zoo.tr.default\nThis error",
        "check-op",
        {"op": "zoo::tr"},
    ),
    (
        "index out of bounds: 0 <= tmp2 < 100L\nException raised from cpp_fused_embedding_mul_0 at /x/y.cpp:22 (most",
        "index-out-of-bounds",
        {"bound": "100L", "kernel": "cpp_fused_embedding_mul_0", "file_line": 22},
    ),
    # Made with plain torch 2.13: what its operators say of a bad index.
    ("index 9 is out of bounds for dimension 0 with size 4", "index-out-of-bounds", {"value": "9", "size": "4"}),
    (
        "out of range: tried to access index 9 on a tensor of 5 elements.",
        "index-out-of-bounds",
        {"value": "9", "size": "5"},
    ),
    (
        "Index 5 of input takes value 50 which is not in the valid range [0, 50)",
        "index-out-of-bounds",
        {"value": "50", "size": "50"},
    ),
    ("INDICES element is out of DATA bounds, id=9 axis_dim=4", "index-out-of-bounds", {"value": "9", "size": "4"}),
    ("Target 7 is out of bounds.", "index-out-of-bounds", {"value": "7"}),
    ("offsets[-1] can not be greater than input's length 7 but got offsets[-1] of 9", "index-out-of-bounds", {}),
    ("Expected i < index_size to be true, but got false.  (Could this error message", "index-out-of-bounds", {}),
    ("Unknown constant state: ConstantState::NONE", "constant-state", {"name": "NONE"}),
    ("Cannot find constants l_weight in constants_map!", "constant-not-given", {"name": "l_weight"}),
    (
        "../x.py:8: unknown: block: [0,0,0], thread: [3,0,0] Assertion `index out of bounds: 0 <= tmp4 < ks0 + 2` failed.",
        "cuda-assert",
        {"variable": "tmp4", "bound": "ks0 + 2", "asserted": "index out of bounds: 0 <= tmp4 < ks0 + 2"},
    ),
    (
        "../aten/src/ATen/native/cuda/IndexKernel.cu:94: operator(): block: [0,0,0], thread: [4,0,0] Assertion "
        '`-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.',
        "cuda-assert",
        {"asserted": '-sizes[i] <= index && index < sizes[i] && "index out of bounds"'},
    ),
    ("CUDA driver error: misaligned address", "cuda-misaligned", {}),
    ("Error: CUDA driver error: file not found", "cuda-file-not-found", {}),
    ("CUDA driver error: invalid argument", "cuda-error", {"text": "invalid argument"}),
    ("CUDA error: invalid device ordinal", "cuda-device-index", {}),
    ("CUDA error: operation not permitted when stream is capturing", "cuda-capture", {}),
    ("CUDA error: operation failed due to a previous error during capture", "cuda-capture", {}),
    ("CUDA error: operation would make the legacy stream depend on a capturing blocking stream", "cuda-capture", {}),
    ("CUDA error: CUDA driver version is insufficient for CUDA runtime version", "cuda-driver", {}),
    ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040)", "cuda-driver", {}),
    ("CUDA error: the provided PTX was compiled with an unsupported toolchain.", "cuda-driver", {}),
    ("Error: CUDA error: no CUDA-capable device is detected", "cuda-no-device", {}),
    ("Error: CUDA error: CUDA driver is a stub library", "cuda-no-device", {}),
    ("Error in dlopen: libcuda.so.1: cannot open shared object file: No such file or directory", "cuda-no-device", {}),
    ("Error: CUDAGuardImpl initialized with non-CUDA DeviceType: cpu", "mixed-device", {}),
    (
        "The specified pointer resides on host memory and is not registered with any CUDA device.",
        "cuda-host-pointer",
        {},
    ),
    ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "cuda-oom", {}),
    (
        "CUDA error: too many resources requested for launch",
        "cuda-error",
        {"text": "too many resources requested for launch"},
    ),
    ("index out of bounds: tmp4 < 2L*ks0\nException", "index-out-of-bounds", {"variable": "tmp4", "bound": "2L*ks0"}),
    (
        "inductor_cpu_throw_if_integer_div_error, /t/include/torch/csrc/inductor/cpp_prefix.h:827, ZeroDivisionError",
        "integer-division",
        {},
    ),
    ("Expected u0 >= 0 but received -3", "runtime-assert", {"condition": "u0 >= 0", "value": "-3"}),
    (
        "Storage size calculation overflowed with sizes=[3000000, 3000000, 3000000] and strides=[9000000000000, 3, 1]",
        "storage-overflow",
        {"sizes": "[3000000, 3000000, 3000000]"},
    ),
    (
        "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
        "4000000000000 bytes. Error code 12 (Cannot allocate memory)",
        "alloc-failed",
        {"bytes": "4000000000000"},
    ),
    (
        "Failed to extract zip file a/b.wrapper.cpp to destination file /tmp/b, mz_zip error string: allocation failed",
        "alloc-failed",
        {},
    ),
    ("Could not find schema for ops::misbehave.", "schema-missing", {"op": "ops::misbehave"}),
    ("Serialized node doesn't match operator \"ops::scale\"'s schema outputs.", "schema-differs", {"op": "ops::scale"}),
    ("Cannot access data pointer of Tensor that doesn't have storage", "op-no-storage", {}),
    (
        "Error in dlopen: libtorch_gpu.so: cannot open shared object file: No such file or directory",
        "dlopen-library",
        {"name": "libtorch_gpu.so"},
    ),
    (
        "Error in dlopen: /tmp/aotinductor_a/model/x.wrapper.so: cannot open shared object file: No such file",
        "dlopen-machine",
        {},
    ),
    (
        "Error in dlopen: /tmp/x.so: undefined symbol: aoti_torch_new_thing",
        "dlopen-symbol",
        {"name": "aoti_torch_new_thing"},
    ),
    ("Error in dlopen: /tmp/x.so: invalid ELF header", "dlopen-format", {}),
    (
        "ValueError: Ran into a kwarg keyword mismatch: Got the following keywords [] but expected ['ids']",
        "kwarg-mismatch",
        {},
    ),
    ("expected inputs vector size to be 2, but got 1", "count-mismatch", {"wanted": "2", "got": "1"}),
    ("Failed to find a generated cpp file or so file for model 'model' in the zip archive.", "model-not-found", {}),
    ("double free or corruption (out)", "heap-corruption", {}),
    ("free(): double free detected in tcache 2", "heap-corruption", {}),
    ("free(): corrupted unsorted chunks", "heap-corruption", {}),
    ("invalid fastbin entry (free)", "heap-corruption", {}),
    ("malloc_consolidate(): invalid chunk size", "heap-corruption", {}),
    ("realloc(): invalid next size", "heap-corruption", {}),
    ("corrupted size vs. prev_size while consolidating", "heap-corruption", {}),
    ("python: malloc.c:2617: sysmalloc: Assertion `(old_top == initial_top (av))' failed.", "heap-corruption", {}),
    ("CUDA error: an illegal memory access was encountered", "cuda-illegal-access", {}),
    (
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa)`",
        "gpu-library",
        {"status": "CUBLAS_STATUS_EXECUTION_FAILED"},
    ),
    ("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED_CUDART", "gpu-library", {}),
    ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "cuda-oom", {}),
    ("CUDA driver error: device-side assert triggered", "cuda-assert", {}),
    ("CUDA driver error: no kernel image is available for execution on the device", "cuda-no-image", {}),
    ("CUDA out of memory. Tried to allocate 32.00 MiB", "cuda-oom", {}),
    ("Torch not compiled with CUDA enabled", "not-compiled-with", {"device": "CUDA"}),
    ("Error generating temporary directory: No such file or directory", "tmpdir-create", {}),
    ("/tmp/x.so: failed to map segment from shared object", "tmpdir-noexec", {}),
    (
        "ops::misbehave: the vocabulary file is missing\nException raised from misbehave at ops.cpp:27 (most",
        "other",
        {"function": "misbehave", "file": "ops.cpp", "file_line": 27},
    ),
]


@every(("message", "name", "facts"), MESSAGES, ids=[f"{i}-{m[1]}" for i, m in enumerate(MESSAGES)])
def test_recognised(message, name, facts):
    symptom = recognise(message)
    assert symptom.name == name
    assert facts.items() <= symptom.facts.items()
    assert symptom.line


HEADER = """/tmp/x/abc.wrapper.cpp:2:10: fatal error: torch/csrc/inductor/aoti_include/cpu.h: No such file or directory
    2 | #include <torch/csrc/inductor/aoti_include/cpu.h>
compilation terminated."""
# g++ 11, clang 17, ld, dash: what they print.
COMPILERS = [
    (HEADER, "link-failed", "torch/csrc/inductor/aoti_include/cpu.h"),
    ("x.cpp:2:10: fatal error: 'cuda.h' file not found\n    2 | #include", "link-failed", "cuda.h"),
    ("/usr/bin/ld: cannot find -lcuda: No such file or directory\ncollect2: error: ld", "link-failed", "-lcuda"),
    ("sh: 1: g++: not found", "link-failed", "g++"),
    ("", "link-failed", None),
    ("x.wrapper.cpp:9:5: error: 'aoti_torch_new' was not declared in this scope", "compile-failed", None),
    (
        "vec512_qint.h:245:25: warning: overflow in conversion from 'int' to 'char' changes value",
        "compile-failed",
        None,
    ),
    ("c.h:1:5: warning: overflow\nc.h:2:10: fatal error: cuda.h: No such file or directory", "link-failed", "cuda.h"),
]


@pytest.mark.parametrize(("stderr", "name", "missing"), COMPILERS)
@pytest.mark.parametrize(
    "message", ["Failed to compile cpp file.", "Failed to link files.", "Failed to compile files."]
)
def test_why_a_package_was_not_compiled_is_on_stderr_only(message, stderr, name, missing):
    symptom = compiler_symptom(recognise(f"RuntimeError: {message}"), stderr)
    assert (symptom.name, symptom.facts.get("missing")) == (name, missing)
    assert compiler_symptom(recognise("RuntimeError: x"), HEADER).name == "other"
