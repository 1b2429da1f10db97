"""What the package will change, carry and drop, as the rebuilt program has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotidoctor.program.state import Leaf, Write, check_leaf, check_mutations, check_size
from aotidoctor.worker.verify.paths import UserInput, user_inputs
from aotidoctor.worker.verify.records import Records, as_place, name_of
from aotidoctor.worker.verify.signature import signature
from aotidoctor.worker.verify.values import free


def check_state(program: Any, records: Records) -> None:
    """All of it."""
    import torch

    inputs = user_inputs(program)
    paths = {item.node.name: item.path for item in inputs if item.node is not None}
    check_mutations(signature(program), paths, _writes(program), records)
    values = {**program.state_dict, **program.constants}.items()
    tensors = {name: value for name, value in values if isinstance(value, torch.Tensor)}
    check_size({name: value.numel() * value.element_size() for name, value in tensors.items()}, records)
    for item in inputs:
        for kind, text in _kind(item):
            check_leaf(Leaf(kind=kind, path=item.path, node=item.node and as_place(item.node), text=text), records)


def _writes(program: Any) -> Iterator[Write]:
    """By every operator that writes to a placeholder, also through views of it."""
    import torch

    roots: dict[Any, str] = {node: node.name for node in program.graph.nodes if node.op == "placeholder"}
    for node in program.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        for argument, given in zip(node.target._schema.arguments, node.args, strict=False):
            alias = argument.alias_info
            if alias is None or not isinstance(given, torch.fx.Node) or given not in roots:
                continue
            # The result of a view, or of an operator in place, is the same memory.
            roots[node] = roots[given]
            if alias.is_write:
                yield Write(node=as_place(node), target=name_of(node.target), root=roots[given])


def _kind(item: UserInput) -> Iterator[tuple[str, str]]:
    """What the input is, and the text of it; nothing for a tensor, and for a number that can be had from one."""
    import torch
    from torch.export.graph_signature import ConstantArgument, CustomObjArgument

    given = item.spec.arg
    if isinstance(given, CustomObjArgument):
        yield "object", given.class_fqn
    elif isinstance(given, ConstantArgument):
        yield "constant", repr(given.value)
    elif isinstance(item.val, torch.SymInt | torch.SymFloat | torch.SymBool) and _is_lost(item):
        yield "symbol", f"{type(item.val).__name__.removeprefix('Sym').lower()} {item.val}"


def _is_lost(item: UserInput) -> bool:
    """A number that is also the size of an input can be had from there."""
    others = (node for node in item.node.graph.nodes if node.op == "placeholder" and node is not item.node)
    sizes = {symbol for node in others for size in getattr(node.meta.get("val"), "shape", ()) for symbol in free(size)}
    return bool(item.node.users) and not set(free(item.val)) <= sizes
