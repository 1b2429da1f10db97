"""Rules G01, G03 and G04 by names: values without metadata, calls that no dialect allows, operators that write."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.program.document import Graph, Node, argument_name, names_of
from aotidoctor.program.found import Found
from aotidoctor.program.static_writes import writes

_BUILTIN = frozenset(
    f"operator.{name}"
    for name in (
        "getitem", "add", "mul", "sub", "truediv", "ge", "le", "gt", "lt", "eq", "ne", "floordiv", "mod", "and_", "or_",
        "not_", "pow", "neg", "abs", "lshift", "rshift",
    )
) | {"math.ceil", "math.floor", "math.trunc"}  # fmt: skip
_TORCH = frozenset({
    "autograd.grad_mode.set_grad_enabled", "sym_int", "sym_float", "sym_ite", "sym_max", "sym_min", "sym_not",
    "sym_sqrt", "_sym_sqrt", "sym_sum", "_C._set_grad_enabled", "amp.autocast_mode._enter_autocast",
    "amp.autocast_mode._exit_autocast", "export.custom_ops._call_custom_autograd_function_in_pre_dispatch",
    "fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless",
})  # fmt: skip
_PREDISPATCH = "torch._functorch.predispatch."
_EXPECTED = (
    "an operator (torch.ops...), a higher-order operator, or one of the Python and torch functions of the dialect"
)


def check_graph(graph: Graph, dialects: Sequence[str], found: Found) -> None:
    """All nodes of one graph."""
    for item in graph.inputs:
        if item.kind in ("tensor", "sym_int", "sym_float", "sym_bool"):
            _check_known(graph, argument_name(item), None, None, found)
    for node in graph.nodes:
        for item in node.outputs:
            for name in names_of(item):
                _check_known(graph, name, node, node.target, found)
        _check_target(graph, node, found)
        if dialects and any(dialect != "TRAINING" for dialect in dialects) and writes(node):
            dialect = next(dialect for dialect in dialects if dialect != "TRAINING")
            found.add(
                "G04",
                "not-functional",
                node=node,
                target=node.target,
                graph=graph.path,
                observed=f"{node.target} writes to its arguments",
                expected=f"an operator that changes no argument, as dialect {dialect or 'ATEN'} asks for",
                dialect=dialect,
            )


def _check_known(graph: Graph, name: str, node: Node | None, target: str | None, found: Found) -> None:
    if not graph.knows(name):
        found.add(
            "G01",
            "val-missing",
            node=node or name,
            target=target,
            graph=graph.path,
            observed=f"no metadata of {name}",
            expected="a val: what the node gives, as a fake tensor, a number, a symbol",
        )


def _check_target(graph: Graph, node: Node, found: Found) -> None:
    if not _is_allowed(node.target):
        found.add(
            "G03",
            "operator-kind",
            node=node,
            target=node.target,
            graph=graph.path,
            observed=f"{node.target or 'nothing'} (a function)",
            expected=_EXPECTED,
        )


def _is_allowed(target: str) -> bool:
    if target.startswith("#"):
        # Operators of registered extensions (ExecuTorch's edge dialect).
        return True
    if target.startswith("torch."):
        return target.removeprefix("torch.") in _TORCH or target.startswith(_PREDISPATCH)
    if target.startswith(("operator.", "math.")):
        return target in _BUILTIN
    parts = target.split(".")
    return all(parts) and (len(parts) == 3 or (len(parts) >= 2 and parts[0] == "higher_order"))
