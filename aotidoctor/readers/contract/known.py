"""Statements of ``run_impl`` that are known and hold no fact of the contract: they are skipped on purpose.

Each is matched whole, so that a new argument or another suffix is not taken for the old statement: bookkeeping of
handles, guards of device and stream, the copy of an input that is not aligned (GPU), the branches of subgraphs, debug
output that was compiled in, the records of the profiler, and assertions about sizes that depend on data, which only a
run can decide. Also the names of runtime functions that are no kernels.
"""

from __future__ import annotations

import re

from aotidoctor.model.late_pattern import LatePattern

_NAME = r"[A-Za-z_]\w*"
# A text that every such statement contains, and the expression of the whole.
_STATEMENTS = (
    ("}", r"\}(?: // .*)?"),
    ("{", r"\{"),
    ("} else {", r"\} else \{"),
    ("if (", r"(?:\} else )?if \(.*\) \{"),
    ("while (1) {", r"while \(1\) \{"),
    ("break;", rf"if \(!{_NAME}\) break;"),
    ("throw std::runtime_error(", r"if \(!\([^{}]*\)\) \{ throw std::runtime_error\([^{}]*\); \}"),
    ("is not aligned to", r'throw std::runtime_error\("\w+ is not aligned to \d+ bytes"\);'),
    ("AOTI_TORCH_", r'AOTI_TORCH_(?:WARN|CHECK)\([^"]*"[^"]*"\);'),
    ("__check_inputs_outputs(", r"__check_inputs_outputs\(input_handles, output_handles\);"),
    ("auto inputs = steal", r"auto inputs = steal_from_raw_handles_to_raii_handles\(input_handles, \d+\);"),
    (
        "auto& kernels = ",
        (
            r"(?:\[\[maybe_unused\]\] )?auto& kernels = "
            r"static_cast<AOTInductorModelKernels&>\(\*this->kernels_\.get\(\)\);"
        ),
    ),
    ("auto ", rf"auto ({_NAME})_(?:size|stride) = \1\.(?:sizes|strides)\(\);"),
    (".reset();", rf"(?:{_NAME}\.reset\(\);\s*)+"),
    ("RAIIAtenTensorHandle ", rf"RAIIAtenTensorHandle {_NAME}(?:\({_NAME}\))?;"),
    ("AtenTensorHandle ", rf"AtenTensorHandle {_NAME};(?:  // output buffer)?"),
    ("std::move(RAIIAtenTensorHandle(", rf"{_NAME} = std::move\(RAIIAtenTensorHandle\({_NAME}\)\);"),
    ("wrap_with_raii_handle_if_needed(", rf"wrap_with_raii_handle_if_needed\({_NAME}\);"),
    (";", rf"(?:bool|float|double|u?int\d+_t|half|bfloat16|at::\w+|c10::[\w:<>]+) {_NAME};"),
    (" var_", r"(?:bool|float|double|int|u?int\d+_t|const char\*|c10::complex<\w+>) var_\d+ = [^;]*;"),
    ("var_array_", r"const [\w:]+\*? var_array_\d+(?:\[\])? = [^;]*;"),
    ("= float(", rf"float {_NAME} = float\({_NAME}\);"),
    ("Guard ", rf"{_NAME}Guard {_NAME}\([^;]*\);"),
    ("Guard> ", rf"std::(?:unique_ptr|optional)<{_NAME}Guard> {_NAME}(?:\([^;]*\))?;"),
    ("std::make_unique<", rf"{_NAME} = std::make_unique<{_NAME}Guard>\([^;]*\);"),
    ("Stream_t ", rf"(?:cuda|hip)Stream_t {_NAME}(?: = [^;]*)?;"),
    ("_aoti_aux_stream_cache.", r"_aoti_aux_stream_cache\.ensure\([^;]*\);"),
    ("AOTI_RUNTIME_CUDA_CHECK(", r"AOTI_RUNTIME_CUDA_CHECK\((?:cuda|hip)(?:Event|Stream|Device)\w+\(.*\)\);"),
    ("CUDA_DRIVER_CHECK(", r"CUDA_DRIVER_CHECK\(cuCtxSynchronize\(\)\);"),
    ("alignas(64) ", rf"alignas\(64\) (?:CUtensorMap|StableTMADescriptor) {_NAME}(?:\{{\}})?;"),
    ("] = ", rf"{_NAME}\.(?:global_address|(?:block|global|kernel)_shape\[\d+\]|strides\[\d+\]) = [^;]*;"),
    ("TMADescriptor", r"init(?:\dD)?TMADescriptor(?:WithMetadata)?\([^;]*\);"),
    (
        ".data_ptr()",
        rf"(?:CUdeviceptr|hipDeviceptr_t|void\*) {_NAME} = reinterpret_cast<[\w*]+>\({_NAME}\.data_ptr\(\)\);",
    ),
    ("RECORD_FUNCTION(", r"RECORD_FUNCTION\(.*\);"),
    ("RAIIAtenRecordFunctionHandle ", rf"RAIIAtenRecordFunctionHandle {_NAME}\(.*\);"),
    ("KernelContextGuard ", rf"KernelContextGuard {_NAME}\(.*\);"),
    ("C10IValueHandle ", rf"C10IValueHandle {_NAME};"),
    ("RAIIC10IValueHandle ", rf"RAIIC10IValueHandle {_NAME}\({_NAME}\);"),
    ("std::", r"std::(?:unordered_map|vector)<[\w:, *]*> \w+(?!\w)[^;]*;"),
    ("kwargs_", rf'kwargs_{_NAME}\.emplace\(".*", {_NAME}\);'),
    ("printf(", r"printf\(.*\);"),
)
# Few are ever needed, and compiled.
_SKIPPED = tuple((needle, LatePattern(text)) for needle, text in _STATEMENTS)
_RUNTIME = re.compile(
    r"aoti_torch_(?:get_\w+|new_uninitialized_tensor|check_inf_and_nan|print_tensor_handle|save_tensor_handle|"
    r"delete_tensor_object|clone_preserve_strides|\w+_to_ivalue|record_function_\w+|warn|set_\w+|create_\w+)$"
)

# Operators of the C shim that are not called after a device, in any release; those of a device are all operators.
_OPERATOR = re.compile(
    r"aoti_torch_(?:(?:cpu|cuda|xpu|mps|mtia|hpu|aten)_\w+|item_\w+|_embedding_bag|_fft_c2c|_mm_plus_mm_out|_scaled_mm(?:_v2)?|"
    r"_scaled_dot_product_(?:efficient|flash)_attention(?:_v2)?|addmm_out|bmm_out|mm_out|convolution|copy_|index_put_out|"
    r"nonzero|repeat_interleave_Tensor|scatter_out|scatter_reduce_out|tensor_copy_|view_as_real|view_dtype|zero_|"
    r"proxy_executor_call_function)"
)
_LONGEST = 20_000


def is_known(statement: str) -> bool:
    """Whether the statement is one that holds no fact."""
    return len(statement) < _LONGEST and any(
        needle in statement and pattern.fullmatch(statement) is not None for needle, pattern in _SKIPPED
    )


def is_runtime(function: str) -> bool:
    """Whether ``function`` is one of the runtime, not an operator: it moves handles and reads no elements."""
    return _RUNTIME.match(function) is not None


def is_operator(function: str) -> bool:
    """Whether a function of the C shim is an operator of some release. Other functions are custom operators' own."""
    return not function.startswith("aoti_torch_") or _OPERATOR.fullmatch(function) is not None
