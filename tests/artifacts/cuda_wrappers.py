"""The wrapper of a CUDA package as another release writes it, from that of 2.13.

Compiling for CUDA takes a GPU, and the package of 2.13 in ``tests/data/cuda`` is a real one. What other releases write
in another way was read in their generators (``torch/_inductor/codegen/cpp_wrapper_gpu.py``), and is written here:

2.15  ``launchKernel`` takes whether launches may overlap; ``assert_alignment`` for results of operators
2.14  the copy of an input that is not aligned is checked; with ``tuned``, settings of kernels are in macros
2.12  modules are not unloaded; nothing is asserted in ``run_impl``
2.11  ``call_<kernel>`` is inline
2.9   another cast in the test for alignment; before that, constants are not references
2.7   no device index, no Triton source, no profiler's scratch memory
2.6   kernels are loaded and launched in ``run_impl``
"""

from __future__ import annotations

import re

_CALL = re.compile(
    r"^    call_(\w+)\((.*), (\w+), this->device_idx_, stream, kernels, this->cubin_dir_\);$", re.MULTILINE
)
_SOURCE = re.compile(r"    /\*\n.*?\*/\n", re.DOTALL)
_FUNCTION = re.compile(r"^template <[^\n]*\nstatic [^\n]* void call_(\w+)\(\n.*?^\}\n", re.MULTILINE | re.DOTALL)
_LAUNCH = re.compile(r"launchKernel\((kernels_\.(\w+)), grid_0, grid_1, grid_2, (\d+), (\d+), kernel_args_, stream_\);")
_LOAD = re.compile(
    r'kernels_\.(\w+) = loadKernel\("([^"]*)", "([^"]*)", (\d+), cubin_dir_, &kernels_\.loaded_modules_\); '
)
_GRID = re.compile(r"uint32_t grid_0 = \(\(xnumel \+ \((\d+) - 1\)\) / \((\d+)\)\);")


def written_by(minor: int, text: str, *, tuned: bool = False) -> str:
    """``text``, a wrapper of 2.13 for CUDA, as 2.``minor`` writes it; ``tuned``: by a first run (2.14 and later)."""
    if minor >= 14:
        text = text.replace(
            "aoti_torch_clone_preserve_strides(arg4_1, &arg4_1_aligned);",
            "AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_clone_preserve_strides(arg4_1, &arg4_1_aligned));",
        )
        text = _tuned(text) if tuned else text
    if minor >= 15:
        text = re.sub(r"(launchKernel\(.*, stream_)\);", r"\1, false);", text)
        aligned = (
            '    if (_check_aoti_runtime_check_inputs_env()) { assert_alignment(buf0, 16, "torch.ops.aten.mm"); }\n'
        )
        text = text.replace("    arg4_1.reset();\n", f"{aligned}    arg4_1.reset();\n", 1)
    if minor <= 12:
        text = text.replace(", &kernels_.loaded_modules_", "")
        text = re.sub(r"    if \(_check_aoti_runtime_check_inputs_env\(\)\) \{ assert_size_stride.*\n", "", text)
    if minor <= 11:
        text = text.replace("static __attribute__((noinline)) void call_", "static inline void call_")
    if minor <= 9:
        text = text.replace("(reinterpret_cast<std::uintptr_t>(arg4_1.data_ptr())", "(long(arg4_1.data_ptr())")
    if minor <= 8:
        text = re.sub(r"(\[\[maybe_unused\]\] auto)& (\w+ = constants_->at)", r"\1 \2", text)
        text = re.sub(r"    CUdeviceptr profile_scratch_scratch_\d+ = 0;\n", "", text)
        text = re.sub(r", &profile_scratch_scratch_\d+", "", text)
    if minor <= 7:
        text = (
            _SOURCE.sub("", text)
            .replace("    int32_t device_idx_,\n", "")
            .replace("this->device_idx_, stream,", "stream,")
        )
    return _inside(text) if minor <= 6 else text


def _tuned(text: str) -> str:
    """Kernels whose settings a first run found: macros before the wrapper, a result that holds them, a late load."""
    macros = ["#pragma once", "// Auto-generated kernel configurations for AOTInductor lazy compile."]
    blocks = dict(zip(_names(text), (found[1] for found in _GRID.finditer(text)), strict=True))
    for load, launch in zip(_LOAD.finditer(text), _LAUNCH.finditer(text), strict=True):
        name, prefix = load[1], load[1].upper()
        macros += [
            "",
            f"// Kernel: {name}",
            f'#define {prefix}_CUBIN_PATH "{load[2]}"',
            f'#define {prefix}_MANGLED_NAME "{load[3]}"',
            f"#define {prefix}_NUM_WARPS {launch[3]}",
            f"#define {prefix}_SHARED_MEM {launch[4]}",
            f"#define {prefix}_XBLOCKS {{{blocks[name]}}}",
            f"#define {prefix}_CONFIG_INDEX -1",
        ]
    text = _LOAD.sub(
        r"kernels_.\1 = loadKernel(\n            \1_result.cubin_path,\n            \1_result.mangled_name,\n"
        r"            \1_result.shared_mem,\n            cubin_dir_,\n            &kernels_.loaded_modules_);",
        text,
    )
    text = _LAUNCH.sub(
        r"launchKernel(\1, grid_0, grid_1, grid_2, \2_result.num_warps, \2_result.shared_mem, kernel_args_, stream_);",
        text,
    )
    for name in blocks:
        head, function, rest = text.partition(f"void call_{name}(")
        block = f"{name}_result.xblocks[0]"
        text = head + function + _GRID.sub(f"uint32_t grid_0 = ((xnumel + ({block} - 1)) / ({block}));", rest, count=1)
    text = text.replace("if (grid_0 == 0 || grid_1 == 0 || grid_2 == 0) return;", "if (grid_0 == 0) return;")
    return "\n".join(macros) + "\n" + text


def _names(text: str) -> list[str]:
    return [found[1] for found in _FUNCTION.finditer(text)]


def _inside(text: str) -> str:
    """Loads and launches inside ``run_impl``, as 2.6 writes them for the same kernels."""
    settings = {}
    for function in _FUNCTION.finditer(text):
        load, launch, grid = _LOAD_OLD.search(function[0]), _LAUNCH.search(function[0]), _GRID.search(function[0])
        settings[function[1]] = (load[2], load[3], load[4], launch[3], launch[4], grid[1])
    text = _FUNCTION.sub("", text)
    number = iter(range(100))

    def launched(call: re.Match[str]) -> str:
        name, tensors, size = call[1], call[2].split(", "), call[3]
        cubin, mangled, shared, warps, _, block = settings[name]
        pointers = [(f"var_{next(number)}", tensor) for tensor in tensors]
        count, given, grid = f"var_{next(number)}", f"kernel_args_var_{next(number)}", f"{name}_grid_{next(number)}"
        values = ", ".join(f"&{one}" for one in (*(pointer for pointer, _ in pointers), count))
        lines = [
            f"if (kernels.{name} == nullptr) {{",
            f'    kernels.{name} = loadKernel("{cubin}", "{mangled}", {shared}, this->cubin_dir_);',
            "}",
            *(f"CUdeviceptr {one} = reinterpret_cast<CUdeviceptr>({tensor}.data_ptr());" for one, tensor in pointers),
            f"int {count} = {size};",
            f"void* {given}[] = {{{values}}};",
            f"Grid {grid} = Grid((({block}L + {size} - 1L)/{block}L), 1L, 1L);",
            f"if ({grid}.is_non_zero()) {{",
            f"    launchKernel(kernels.{name}, {grid}.grid_x, {grid}.grid_y, {grid}.grid_z, {warps}, {shared}, {given}, stream);",
            "}",
        ]
        return "\n".join(f"    {line}" for line in lines)

    return re.sub(
        r"^    call_(\w+)\((.*), (\w+), stream, kernels, this->cubin_dir_\);$", launched, text, flags=re.MULTILINE
    )


_LOAD_OLD = re.compile(r'kernels_\.(\w+) = loadKernel\("([^"]*)", "([^"]*)", (\d+), cubin_dir_\); ')
