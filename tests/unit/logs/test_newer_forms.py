"""Messages of newer runtimes and of other systems: packages for other devices, entry points, mapped weights, delegates."""

from __future__ import annotations

from tests.every import every
from tests.unit.logs.reading import causes, read

FORMS = (
    (
        "backend-unsupported",
        "RuntimeError: CPU AOTI requires a Triton CPU backend that emits a launcher `.so` exporting `run_from_nativert`; "
        "kernel 'triton_poi_fused_add_0' has compiled.asm keys ['ttir', 'so'].",
    ),
    (
        "backend-unsupported",
        "terminate called after throwing an instance of 'c10::Error'\n  what():  Triton CPU launcher .so does not export "
        "'run_from_nativert' (/tmp/x/c1.so): undefined symbol: run_from_nativert. The CPU AOTI Triton path requires a "
        "Triton CPU build that emits a NativeRT-compatible launcher.",
    ),
    (
        "backend-unsupported",
        "RuntimeError: CpuTritonKernelCache not populated for 'triton_poi_fused_add_0': the autotune block did not save "
        "this kernel. Check that config.triton.autotune_at_compile_time is True.",
    ),
    (
        "device-unavailable",
        "RuntimeError: This AOTInductor package was compiled for CUDA, but CUDA is not available in the current process.",
    ),
    (
        "device-unavailable",
        "RuntimeError: AOTI package model.pt2 was compiled for device type cuda but no CUDA or ROCm device is visible",
    ),
    ("load-device", "RuntimeError: Can't instantiate CUDA model for cpu"),
    ("load-device", "RuntimeError: model was compiled for cpu but expected device type cuda"),
    ("load-device", "Error: Invalid device: cpu, but expected device type cuda"),
    (
        "load-api",
        "RuntimeError: No update_constant_buffer_from_cpu in .so! Consider rebuild your model with the latest AOTInductor.",
    ),
    (
        "load-api",
        "No AOTInductorModelContainerRunSingleThreaded function in .so! To use AOTInductor-compiled model in the single-threaded mode,consider rebuild your model with the latest AOTInductor.",
    ),
    (
        "abi-mismatch",
        "RuntimeError: Expected AOTInductorModelContainerGetConstantsBlobSize. Otherwise consider rebuilding your model with the latest AOTInductor.",
    ),
    (
        "weights-not-loaded",
        "Error: Constants are not mmap'd. Use AOTInductorModelUpdateConstantsBlob to initialize the constants first.",
    ),
    ("load-api", "RuntimeError: constant blob size is only available for mmap'd weights"),
    ("large-weights", "Error: weights_offset must be aligned to 16K boundary"),
    ("artifact-missing", "RuntimeError: Failed to open serialized weights file"),
    (
        "custom-op-schema",
        "RuntimeError: Expected extern kernel mylib::scale to have 2 arguments but got 3 from extern kernel",
    ),
    ("custom-op-schema", "Expected 2 output tensors but got 1 from extern kernel mylib::scale"),
    (
        "artifact-incomplete",
        "RuntimeError: Unable to find a proxy executor to run custom ops. Please check if there is a json file generated in the same directory as the so, or use torch._inductor.aoti_compile_and_package to package everything into a PT2 artifact.",
    ),
    ("artifact-incomplete", "RuntimeError: [nativert] weight encoder.layer.0.weight not found in weight paths"),
    (
        "weights-mismatch",
        "torch/nativert/executor/Weights.cpp: Check failed: weight decoder.bias has mismatched dtype Float vs Half",
    ),
    ("artifact-incomplete", "RuntimeError: data/weights/model_weights_config.json not found in PT2 archive"),
    (
        "missing-c-shim",
        "[cuda_backend.cpp:152] Failed to load shared library: /tmp/x_so_blob33.so: undefined symbol: aoti_torch_cuda_bmm_out",
    ),
    (
        "missing-c-shim",
        "E 00:00:00.1 executorch:aoti_delegate.cpp:90] Failed to load AOTInductorModelContainerCreateWithDevice from /tmp/a.so: undefined symbol: aoti_torch_item_bool",
    ),
    (
        "missing-c-shim",
        "RuntimeError: Missing fallback kernels: ['at::_ops::cumsum::call']. The aoti runtime of ExecuTorch has no such kernel",
    ),
    (
        "toolchain-missing",
        "fatal error C1083: Cannot open include file: 'torch/csrc/inductor/aoti_runtime/interface.h': No such file or directory",
    ),
    ("toolchain-missing", "LINK : fatal error LNK1181: cannot open input file 'torch_cpu.lib'"),
    ("toolchain-missing", "LINK : fatal error LNK1104: cannot open file 'sleef.lib'"),
    (
        "undefined-symbol-link",
        'main.obj : error LNK2019: unresolved external symbol "public: __cdecl torch::inductor::AOTIModelPackageLoader::AOTIModelPackageLoader(void)" referenced in function main',
    ),
    ("undefined-symbol-link", "error LNK2001: unresolved external symbol aoti_torch_cpu_mm_out"),
    (
        "executable-stack",
        "OSError: /opt/x/libtorch_cpu.so: cannot enable executable stack as shared object requires: Permission denied",
    ),
    ("gpu-arch-mismatch", "RuntimeError: CUDA error: a PTX JIT compilation failed"),
    ("driver-mismatch", "CUDA driver error: PTX JIT compiler library not found"),
    ("driver-mismatch", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    ("driver-mismatch", "ptxas fatal   : Unresolved extern function '__nv_expf'"),
    (
        "pytree-class-missing",
        "NotImplementedError: No registered serialization name for <class 'transformers.cache_utils.DynamicCache'> found. Please update your _register_pytree_node call with a `serialized_type_name` kwarg.",
    ),
    ("pytree-class-missing", "ValueError: Serializing <class 'mylib.Out'> in pytree is not registered."),
    ("pytree-class-missing", "NotImplementedError: No registered serialization name for class mylib.Cfg found."),
    (
        "toolchain-missing",
        "CMake Error: Could NOT find OpenMP_CXX (missing: OpenMP_CXX_FLAGS OpenMP_CXX_LIB_NAMES)\ntorch/share/cmake",
    ),
    ("toolchain-missing", "torch._inductor.exc.CppCompileError: c.cpp:3:10: fatal error: 'omp.h' file not found"),
    ("missing-library", "OSError: libomp.so.5: cannot open shared object file: No such file or directory"),
    (
        "toolchain-missing",
        "ld: library 'omp' not found\nclang: error: linker command failed with exit code 1 (use -v to see invocation)\ntorchinductor",
    ),
    ("codegen-bug", "RuntimeError: Failed to create pipeline state for metal kernel generated_kernel"),
    (
        "weights-mismatch",
        "RuntimeError: update_constant_buffer: constant 'w' is on device type 0 but expected device type 1",
    ),
    (
        "load-device",
        "Error: device is CPU. Constant 'w' was compiled for a non-CPU device. Hint: This can happen if you compiled on GPU but are loading on CPU, which is not supported.",
    ),
)


@every(("cause", "text"), FORMS)
def test_a_newer_form_has_its_cause(cause, text):
    assert causes(read(f"{text}\n"))[:1] == [cause]
