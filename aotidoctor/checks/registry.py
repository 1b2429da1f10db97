"""List ``CHECKS`` in the order in which they run, cheapest and most fundamental first.

Separate from ``check``: this module imports every check, and every check imports ``check``.
"""

from __future__ import annotations

from importlib import import_module

from aotidoctor.checks.check import Check

# The modules, each of which has a CHECK.
_ORDER = """
artifact_missing artifact_wrong_kind artifact_corrupt artifact_unsafe artifact_bomb artifact_ambiguous
artifact_layout artifact_incomplete artifact_bad_metadata artifact_cpp_only model_name
platform_mismatch torch_missing device_unavailable driver_mismatch gpu_arch_mismatch isa_mismatch missing_library
abi_mismatch executable_stack load_call toolchain_missing tmpdir openmp_conflict threads_exceed_build out_of_memory
custom_op_missing pytree_class_missing
output_spec
weights_not_loaded weights_file executorch_data executorch_backend load_device device_index mixed_device
inputs_file input_kwargs input_tree input_order input_nontensor input_count input_constant_changed input_layout
input_device input_dtype input_lazy_bit input_rank input_shape input_stride input_divisibility input_shape_disagree
input_range input_alias input_merged input_nan
launch_limits
train_mode reference_mismatch
stamp_mismatch
"""
# What is asked of an ExecuTorch program or its data; the others are about packages.
_OF_EXECUTORCH_FILE = """
artifact_wrong_kind artifact_missing
artifact_corrupt artifact_incomplete model_name platform_mismatch executorch_data executorch_backend
"""
_OF_EXECUTORCH_CODE = """
device_unavailable gpu_arch_mismatch missing_library abi_mismatch executable_stack device_index
"""
_OF_EXECUTORCH_METHOD = """
inputs_file input_kwargs input_tree input_order input_nontensor input_count input_device input_dtype input_rank
input_shape input_stride input_range input_nan
"""


def executorch_checks(*, code: bool, method: bool) -> frozenset[str]:
    """Names of the checks of an ExecuTorch file, those of AOTInductor code and those of a method's inputs with them."""
    return frozenset(
        f"{_OF_EXECUTORCH_FILE}{_OF_EXECUTORCH_CODE if code else ''}{_OF_EXECUTORCH_METHOD if method else ''}".split()
    )


# What is asked of a folder of packages none of which is chosen.
FOLDER_CHECKS = frozenset({"artifact_missing", "artifact_wrong_kind", "gpu_arch_mismatch"})
# What is asked of an artifact of torch.compile.
PRECOMPILED_CHECKS = frozenset(
    {
        *("artifact_missing", "artifact_wrong_kind", "artifact_corrupt", "artifact_incomplete"),
        *("torch_missing", "device_unavailable", "gpu_arch_mismatch", "abi_mismatch", "load_call"),
        "threads_exceed_build",
        *(name for name in _ORDER.split() if name.startswith("input") and name != "input_merged"),
    }
)
CHECKS: tuple[Check, ...] = tuple(import_module(f"aotidoctor.checks.{name}").CHECK for name in _ORDER.split())
