"""Which of PyTorch's own operators write to an argument, and which hand out views: by name."""

from __future__ import annotations

from aotidoctor.program.document import Node

# Operators that write and do not end with an underscore, with the positions of the tensors that they write to.
_SILENT = {
    "aten._native_batch_norm_legit": (3, 4),
    "aten._batch_norm_with_update": (3, 4),
    "aten.rrelu_with_noise": (1,),
    "aten.fused_moving_avg_obs_fake_quant": (3, 4, 5, 6),
    "aten._fused_moving_avg_obs_fq_helper": (3, 4, 5, 6),
    "aten._cummax_helper": (1, 2),
    "aten._cummin_helper": (1, 2),
    "aten.record_stream": (0,),
    "aten.set_data": (0,),
}
_FUNCTIONAL = frozenset({"aten._no_grad_embedding_renorm_", "aten._native_batch_norm_legit.no_stats"})
_VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        "adjoint", "alias", "as_strided", "broadcast_to", "chunk", "conj", "contiguous", "detach", "diagonal", "expand",
        "expand_as", "flatten", "imag", "lift_fresh", "linalg_diagonal", "mH", "mT", "matrix_H", "moveaxis", "movedim",
        "narrow", "numpy_T", "permute", "positive", "ravel", "real", "reshape", "reshape_as", "resolve_conj",
        "resolve_neg", "select", "slice", "squeeze", "swapaxes", "swapdims", "t", "to", "transpose", "unflatten",
        "unfold", "unsqueeze", "view", "view_as", "view_as_complex", "view_as_real", "_conj", "_neg_view",
        "_reshape_alias", "unbind", "split", "split_with_sizes", "tensor_split", "hsplit", "vsplit", "dsplit",
    )
)  # fmt: skip
_TORCH_NAMESPACES = ("aten.", "prims.")


def writes(node: Node) -> bool:
    """Whether the operator is one of PyTorch's that writes to an argument."""
    return bool(written(node)) or _is_out(node)


def written(node: Node) -> tuple[int, ...]:
    """Positions of the arguments that are written to, of one of PyTorch's operators."""
    operator, _, overload = node.target.rpartition(".")
    if not node.target.startswith(_TORCH_NAMESPACES) or operator in _FUNCTIONAL or node.target in _FUNCTIONAL:
        return ()
    if operator in _SILENT:
        return () if overload == "no_stats" else _SILENT[operator]
    name = operator.rpartition(".")[2]
    return (0,) if name.endswith("_") and not name.endswith("__") else ()


def shows(node: Node) -> bool:
    """Whether what the operator gives may be the memory of its first argument."""
    return node.target.rpartition(".")[0] in _VIEWS


def _is_out(node: Node) -> bool:
    overload = node.target.rpartition(".")[2]
    named = overload == "out" or overload.endswith("_out")
    return node.target.startswith(_TORCH_NAMESPACES) and named and any(name == "out" for name, _ in node.inputs)
