"""Rules G01, G03, G04, A03 and A07 by the names in the archive."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.program.document import Graph, Node, argument_name, names_of
from aotidoctor.program.found import Found
from aotidoctor.program.operators import (
    SWITCHES,
    Call,
    add_custom,
    add_not_functional,
    add_operator_kind,
    add_val_missing,
    check_training,
)
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
_OWN = ("aten", "prim", "prims")


def check_graph(graph: Graph, dialects: Sequence[str], found: Found) -> None:
    """Metadata of all values, and targets of all nodes, of one graph."""
    strict = next((dialect for dialect in dialects if dialect != "TRAINING"), None)
    for item in graph.inputs:
        if item.kind in ("tensor", "sym_int", "sym_float", "sym_bool"):
            name = argument_name(item)
            _check_known(name, Call(graph=graph.path, node=name, target=None), graph, found)
    for node in graph.nodes:
        call = Call(graph=graph.path, node=node, target=node.target)
        for item in node.outputs:
            for name in names_of(item):
                _check_known(name, call, graph, found)
        if not _is_allowed(node.target):
            add_operator_kind(call, "a function", found)
        if strict is not None and writes(node):
            add_not_functional(call, strict, found)


def check_operators(everything: Sequence[Graph], found: Found) -> None:
    """Training mode at each place; each custom operator once."""
    seen: set[str] = set()
    for path, node in ((graph.path, node) for graph in everything for node in graph.nodes if node.is_operator):
        check_training(Call(graph=path, node=node, target=node.target), trains=_trains(node), found=found)
        namespace, name, overload = node.target.split(".")
        qualified = f"{namespace}::{name}" + ("" if overload == "default" else f".{overload}")
        if namespace not in _OWN and qualified not in seen:
            seen.add(qualified)
            add_custom(Call(graph=path, node=node, target=qualified), found)


def _trains(node: Node) -> bool:
    return any(name in SWITCHES and given.kind == "bool" and given.value is True for name, given in node.inputs)


def _check_known(name: str, call: Call, graph: Graph, found: Found) -> None:
    if not graph.knows(name):
        add_val_missing(call, f"no metadata of {name}", found)


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
