"""The user's path of every input of a program (``args[0]['a']``), beside its spec and its placeholder."""

from __future__ import annotations

from typing import Any

from aotidoctor.model.record import record


@record
class UserInput:
    """One leaf of the call. ``keys`` are the steps after ``args`` or ``kwargs``; ``node`` None: no placeholder."""

    path: str
    keys: tuple[Any, ...]
    is_keyword: bool
    spec: Any
    node: Any

    @property
    def val(self) -> Any:
        """What the placeholder stands for."""
        return None if self.node is None else self.node.meta.get("val")


def user_inputs(program: Any) -> list[UserInput]:
    """Leaves in the order of the signature; by their names in the graph where the call spec does not fit."""
    from torch.export.graph_signature import InputKind

    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    specs = list(program.graph_signature.input_specs)
    same = len(nodes) == len(specs)
    found = [(spec, nodes[at] if same else None) for at, spec in enumerate(specs) if spec.kind is InputKind.USER_INPUT]
    paths = _paths(program)
    named = paths if len(paths) == len(found) else [(_name(spec), (), False) for spec, _ in found]
    return [
        UserInput(path=path, keys=keys, is_keyword=is_keyword, spec=spec, node=node)
        for (path, keys, is_keyword), (spec, node) in zip(named, found, strict=True)
    ]


def leaf_examples(program: Any) -> list[Any]:
    """The sample inputs as leaves; empty where the program has none."""
    from torch.utils import _pytree as pytree

    try:
        return list(pytree.tree_leaves(program.example_inputs)) if program.example_inputs else []
    except Exception:
        return []


def argument_names(program: Any) -> list[str]:
    """Names of the positional arguments of forward, empty where the program does not tell."""
    for entry in program.module_call_graph:
        if entry.fqn == "" and entry.signature is not None:
            return list(getattr(entry.signature, "forward_arg_names", None) or [])
    return []


def _paths(program: Any) -> list[tuple[str, tuple[Any, ...], bool]]:
    from torch.utils import _pytree as pytree

    try:
        in_spec = program.call_spec.in_spec
        tree = pytree.tree_unflatten(range(in_spec.num_leaves), in_spec)
        leaves = pytree.tree_flatten_with_path(tree)[0]
        found = [(keys, pytree.keystr(keys[1:])) for keys, _ in leaves]
        return [
            (f"{('args', 'kwargs')[keys[0].idx]}{text}", tuple(map(_key, keys[1:])), keys[0].idx == 1)
            for keys, text in found
        ]
    except Exception:
        return []


def _key(step: Any) -> Any:
    for name in ("idx", "key", "name"):
        if hasattr(step, name):
            return getattr(step, name)
    return str(step)


def _name(spec: Any) -> str:
    return str(getattr(spec.arg, "name", "") or "a constant")
