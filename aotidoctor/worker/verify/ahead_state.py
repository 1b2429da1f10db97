"""Rules A08, A09 and A11: inputs that are written to, weights of gigabytes, inputs that are no tensors."""

from __future__ import annotations

from typing import Any

from aotidoctor.model.exported import EXPECTED_STATE, LARGE
from aotidoctor.worker.verify.paths import UserInput, user_inputs
from aotidoctor.worker.verify.records import Records, name_of


def check_state(program: Any, records: Records) -> None:
    """What the package will change, carry and drop."""
    inputs = user_inputs(program)
    _check_mutations(program, inputs, records)
    _check_size(program, records)
    for item in inputs:
        _check_kind(item, records)


def _check_mutations(program: Any, inputs: list[UserInput], records: Records) -> None:
    from torch.export.graph_signature import InputKind, OutputKind

    paths = {item.node.name: item.path for item in inputs if item.node is not None}
    roles = {
        node.name: spec for node, spec in zip(_placeholders(program), program.graph_signature.input_specs, strict=False)
    }
    nodes = {node.name: node for node in program.graph.nodes}
    for spec in program.graph_signature.output_specs:
        name = getattr(spec.arg, "name", "")
        if spec.kind is OutputKind.USER_INPUT_MUTATION:
            _input(records, nodes.get(name), paths.get(str(spec.target), str(spec.target)), "the graph's signature")
        elif spec.kind is OutputKind.BUFFER_MUTATION:
            _state(records, nodes.get(name), spec.target, "buffer")
        elif spec.kind is getattr(OutputKind, "PARAMETER_MUTATION", None):
            _state(records, nodes.get(name), spec.target, "parameter")
    for node, root in _writes(program):
        role = roles.get(root.name)
        if role is None:
            continue
        if role.kind is InputKind.USER_INPUT:
            _input(records, node, paths.get(root.name, root.name), name_of(node.target))
        elif role.kind in (InputKind.BUFFER, InputKind.PARAMETER):
            _state(records, node, role.target, "buffer" if role.kind is InputKind.BUFFER else "parameter")


def _placeholders(program: Any) -> list[Any]:
    return [node for node in program.graph.nodes if node.op == "placeholder"]


def _writes(program: Any) -> list[tuple[Any, Any]]:
    """``(node, placeholder)`` for every operator that writes to a placeholder, also through views of it."""
    import torch

    roots: dict[Any, Any] = {node: node for node in _placeholders(program)}
    found = []
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
                found.append((node, roots[given]))
    return found


def _input(records: Records, node: Any, path: str, by: str) -> None:
    records.add(
        "A08",
        "input-mutation",
        node=node,
        target=path,
        observed=f"{path} is written to ({by})",
        expected="inputs that are only read: the package writes into the caller's tensors",
    )


def _state(records: Records, node: Any, name: Any, kind: str) -> None:
    observed, expected = f"each call changes {name}", EXPECTED_STATE[kind]
    records.add("A08", f"{kind}-mutation", node=node, target=name, observed=observed, expected=expected)


def _check_size(program: Any, records: Records) -> None:
    import torch

    values = {**program.state_dict, **program.constants}
    sizes = {
        name: value.numel() * value.element_size() for name, value in values.items() if isinstance(value, torch.Tensor)
    }
    total = sum(sizes.values())
    if total > LARGE:
        largest = max(sizes, key=lambda name: sizes[name])
        observed = f"{total:,} bytes of weights and constants, the largest {largest} with {sizes[largest]:,}"
        records.add(
            "A09",
            "large-constants",
            target=largest,
            observed=observed,
            expected=f"at most {LARGE:,} bytes, which go into the library itself",
            bytes=total,
        )


def _check_kind(item: UserInput, records: Records) -> None:
    import torch
    from torch.export.graph_signature import ConstantArgument, CustomObjArgument

    if isinstance(item.spec.arg, CustomObjArgument):
        observed = f"{item.path} is a custom object ({item.spec.arg.class_fqn})"
        records.add(
            "A11",
            "object-input",
            node=item.node,
            target=item.path,
            observed=observed,
            expected="tensors: the package takes only tensors",
        )
    elif isinstance(item.spec.arg, ConstantArgument):
        observed = f"{item.path} = {item.spec.arg.value!r} is part of the program"
        records.add(
            "A11",
            "constant-input",
            node=item.node,
            target=item.path,
            observed=observed,
            expected="the same value at each call: a different one is ignored",
        )
    elif isinstance(item.val, torch.SymInt | torch.SymFloat | torch.SymBool) and _is_lost(item):
        kind = type(item.val).__name__.removeprefix("Sym").lower()
        observed = f"{item.path} is a number that may change ({kind} {item.val})"
        records.add(
            "A11",
            "symbolic-input",
            node=item.node,
            target=item.path,
            observed=observed,
            expected="a tensor, or a size of a tensor: the package is called with tensors only",
        )


def _is_lost(item: UserInput) -> bool:
    """A number that is also the size of an input can be had from there."""
    symbols: set[Any] = getattr(item.val.node.expr, "free_symbols", set())
    sizes: set[Any] = set()
    for node in item.node.graph.nodes:
        val = node.meta.get("val") if node.op == "placeholder" and node is not item.node else None
        for size in getattr(val, "shape", ()):
            sizes |= getattr(getattr(getattr(size, "node", None), "expr", None), "free_symbols", set())
    return bool(item.node.users) and not symbols <= sizes
