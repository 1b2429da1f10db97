"""Messages of containers, loaders, servers and compilers around torch; and of autograd in the program that calls a model."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text
from tests.every import every
from tests.unit.logs.reading import causes, read

FORMS = (
    ("cuda-graph-capture", "RuntimeError: Capture must end on the same stream it began on."),
    (
        "cuda-graph-capture",
        "terminate called after throwing an instance of 'c10::Error'\n"
        "  what():  [Rank:1] FATAL ERROR :: MODULE:PT_DEVICE GRAPH:: Capture must end on the same stream it began on.",
    ),
    ("cuda-graph-capture", "RuntimeError: capture_end() called before capture_begin()."),
    (
        "driver-mismatch",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version",
    ),
    (
        "driver-mismatch",
        "docker: Error response from daemon: OCI runtime create failed: error running hook: exit status 1, stdout: , "
        "stderr: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=11.0: unknown.",
    ),
    ("gpu-arch-mismatch", "nvidia-container-cli: requirement error: unsatisfied condition: arch>=7.5"),
    ("device-unavailable", "nvidia-container-cli: initialization error: nvml error: driver not loaded"),
    ("device-unavailable", "nvidia-container-cli: initialization error: driver error: failed to process request"),
    ("gpu-arch-mismatch", "Error invalid device function at line 86 in file /src/csrc/ops.cu"),
    ("gpu-arch-mismatch", "error: 'invalid device function'(98) at bench/main.cpp:41"),
    (
        "missing-library",
        "[E:onnxruntime:app, provider_bridge_ort.cc:902 onnxruntime::ProviderSharedLibrary::Ensure] Failed to load library, error code: 126",
    ),
    (
        "missing-library",
        'FAIL : LoadLibrary failed with error 126 "" when trying to load "C:\\app\\providers_cuda.dll"',
    ),
    ("abi-mismatch", 'FAIL : LoadLibrary failed with error 127 "" when trying to load "C:\\app\\providers_cuda.dll"'),
    ("platform-mismatch", "Failed to load library C:\\app\\ops.dll, error code: 193"),
    (
        "abi-mismatch",
        "ImportError: dlopen(/opt/app/_C.so, 9): Library not loaded: @rpath/libATen.dylib\n"
        "  Referenced from: /opt/app/libshm.dylib\n"
        "  Reason: Incompatible library version: libshm.dylib requires version 2.0.0 or later, but libATen.dylib provides version 1.0.0",
    ),
    (
        "custom-op-missing",
        "NotImplementedError: sort_op is not available since customized PyTorch OP library is not built when freezing the model.",
    ),
    ("custom-op-missing", "RuntimeError: roi_pool is not available because the C++ ops were not compiled"),
    ("model-hang", "[2026-03-02 07:25:31 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"),
    ("model-hang", "[2025-02-08 10:01:14 DP1 TP3] Watchdog timeout (self.watchdog_timeout=120)"),
    (
        "codegen-bug",
        "LLVM ERROR: Layout is expected to be surjective, i.e. every `out` coordinate can be reached by some `in` coordinate",
    ),
    ("codegen-bug", "LLVM ERROR: Failed to compute parent layout for slice layout."),
    (
        "codegen-bug",
        "cutlass.base_dsl.common.DSLRuntimeError: DSLRuntimeError: \N{ICE CUBE}\N{ICE CUBE} ICE IR Verification Failed \N{ICE CUBE}\n"
        "  Caused exception: Verification failed:",
    ),
    ("codegen-bug", "RuntimeError: Graph compile failed. synStatus=synStatus 26 [Generic failure]."),
    ("export-unsupported", "RuntimeError: Unsupported FX nodes: {'call_function': ['aten.special_i0.default']}."),
    (
        "export-unsupported",
        "torch.onnx._internal.exporter._errors.ConversionError: Failed to convert the exported program to an ONNX model. "
        "This is step 3/3 of exporting the model to ONNX.",
    ),
    ("arch-flags", "RuntimeError: No supported CUDA architectures found for major versions [9, 10]."),
    (
        "toolchain-missing",
        "RuntimeError: Assertion error (csrc/jit/include_parser.hpp:69):\n"
        "Failed to open: /opt/venv/deep_gemm/include/deep_gemm/impls/sm90_gemm.cuh",
    ),
    (
        "weights-mismatch",
        "AssertionError: Tried to load weights of size torch.Size([4096, 1])to a parameter of size torch.Size([64, 128])",
    ),
    (
        "weights-mismatch",
        "AssertionError: Attempted to load weight (torch.Size([3600])) into parameter (torch.Size([3584]))",
    ),
    (
        "weights-mismatch",
        'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.12/site-packages/vllm/model_executor/layers/linear.py", line 998, in weight_loader\n'
        "    assert param_data.shape == loaded_weight.shape\nAssertionError",
    ),
    (
        "host-application",
        "thread 'main' panicked at /home/u/.cargo/registry/src/index.crates.io-6f17/tch-0.15.0/src/wrappers/tensor.rs:422:38:\ncalled `Result::unwrap()` on an `Err` value: "
        'Kind("incoherent elt kind, Ok(Half) != Float")',
    ),
    (
        "host-application",
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  cudaFree failed with: 4: driver shutting down",
    ),
    (
        "abi-mismatch",
        "ImportError: cannot import name 'fused_moe' from 'sgl_kernel' (/opt/venv/lib/python3.12/site-packages/sgl_kernel/__init__.py)",
    ),
    (
        "host-application",
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.1.0.7]:28048",
    ),
)

WINDOWS = (
    ("tmpdir", "[WinError 112] 磁盘空间不足。: 'C:\\\\Users\\\\u\\\\AppData\\\\Local\\\\Temp\\\\torchinductor_u'"),
    (
        "out-of-memory",
        '[WinError 1455] 页面文件太小\N{FULLWIDTH COMMA}无法完成操作。 Error loading "D:\\venv\\torch\\lib\\cublas64_11.dll" or one of its dependencies.',
    ),
    (
        "out-of-memory",
        '[WinError 1455] The paging file is too small for this operation to complete. Error loading "D:\\venv\\torch\\lib\\cudnn64_8.dll" or one of its dependencies.',
    ),
    (
        "abi-mismatch",
        '[WinError 127] The specified procedure could not be found. Error loading "D:\\venv\\torch\\lib\\c10.dll" or one of its dependencies.',
    ),
    (
        "abi-mismatch",
        '[WinError 127] 找不到指定的程序。 Error loading "D:\\venv\\torch\\lib\\c10.dll" or one of its dependencies.',
    ),
    (
        "platform-mismatch",
        '[WinError 193] %1 no es una aplicación Win32 válida. Error loading "D:\\venv\\torch\\lib\\c10.dll" or one of its dependencies.',
    ),
    (
        "missing-library",
        '[WinError 126] Le module spécifié est introuvable. Error loading "D:\\venv\\torch\\lib\\fbgemm.dll" or one of its dependencies.',
    ),
    ("abi-mismatch", "DLL load failed while importing libtorch_ops: 动态链接库(DLL)初始化例程失败。"),
)

HEALTHY = (
    "WARNING ops.py: custom ops are not available, using the native implementation\nServer started on port 8000",
    "INFO args: watchdog_timeout=300 soft_watchdog_timeout=None",
    "INFO watchdog timeout (self.watchdog_timeout=300) was set\nINFO ready",
    "INFO loaded library libops.so in 126 ms, error code: 0",
    "INFO weights of size torch.Size([64, 128]) were loaded",
    "[W CUDAGuardImpl.h:46] Warning: CUDA warning: driver shutting down (function uncheckedGetDevice)\nDone.",
    "INFO gloo/transport/tcp/pair.cc:598] connected to [10.1.0.7]:28048",
)


@every(("cause", "text"), FORMS)
def test_it_is_told(cause, text):
    _, diagnoses, _ = classify_text(text.encode(), "log")
    assert diagnoses[0].cause == cause


@pytest.mark.parametrize(("cause", "text"), WINDOWS)
def test_windows_says_it_in_the_language_of_its_user(cause, text):
    _, diagnoses, _ = classify_text(f"OSError: {text}".encode(), "log")
    assert diagnoses[0].cause == cause


def test_gradients_while_a_program_is_traced_are_of_the_export():
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/torch/_dynamo/symbolic_convert.py", line 100, in step\n'
        "    self.dispatch_table[inst.opcode](self, inst)\n"
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
    )
    _, diagnoses, _ = classify_text(text.encode(), "log")
    assert [one.cause for one in diagnoses][:1] != ["host-application"]


@pytest.mark.parametrize("text", HEALTHY)
def test_the_same_words_where_nothing_failed(text):
    _, diagnoses, reading = classify_text(text.encode(), "log")
    assert (diagnoses, reading.unknown) == ((), ())


@pytest.mark.parametrize(
    "text",
    [
        "make: *** [install] Error 127",
        "ValueError: invalid device function name",
        "I loaded the library; exit with error 127",
        "LLVM ERROR: Symbol not found: foo",
    ],
)
def test_words_like_these_name_no_cause(text):
    assert not {"abi-mismatch", "gpu-arch-mismatch", "codegen-bug"} & set(causes(read(text)))
