"""Names of operators, and which of them torch brings along."""

from __future__ import annotations

from collections.abc import Iterable

BUILT_IN = frozenset({
    "_", "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "_operator", "aten", "c10d", "c10d_functional",
    "debugprims", "export", "higher_order", "inductor", "math", "mkl", "mkldnn", "mkldnn_prepacked", "onednn",
    "prepacked", "prim", "prims", "profiler", "quantized", "quantized_decomposed", "rngprims", "sparse",
    "static_runtime", "streams", "symm_mem", "torch", "triton", "xnnpack",
})  # fmt: skip


def foreign(targets: Iterable[str]) -> list[str]:
    """``namespace::name`` of the operators that torch does not bring along, without overload, in order."""
    names = dict.fromkeys(qualified(target) for target in targets if target)
    return [name for name in names if name.partition("::")[0] not in BUILT_IN]


def qualified(target: str) -> str:
    """``ops::scale`` of ``torch.ops.ops.scale.default``, ``ops.scale.default`` or ``ops::scale.default``."""
    if "::" in target:
        namespace, _, name = target.partition("::")
        return f"{namespace}::{name.partition('.')[0]}"
    parts = target.removeprefix("torch.ops.").split(".")
    return f"{parts[0]}::{parts[1]}" if len(parts) > 1 else target
