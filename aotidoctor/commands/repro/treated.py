"""The call without the fault: the steps of a treatment as Python expressions over the call that fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aotidoctor.model.inputs import InputSet, LeafValue
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.tree import MAPPINGS, Leaf, Tree, child_path

Step = JsonObject


def _contiguous(leaf: str, step: Step) -> str:
    stride = step.get("stride")
    if not isinstance(stride, list):
        return f"{leaf}.contiguous()"
    return f"torch.empty_strided({leaf}.shape, {tuple(stride)}, dtype={leaf}.dtype).copy_({leaf})"


_LEAF_STEPS: Mapping[str, Callable[[str, Step], str]] = {
    "cast": lambda leaf, step: f"{leaf}.to(torch.{step['dtype']})",
    "contiguous": _contiguous,
    "dense": lambda leaf, _: f"{leaf}.to_dense()",
    "to": lambda leaf, step: f'{leaf}.to("{step["device"]}")',
    "resolve": lambda leaf, _: f"{leaf}.resolve_conj().resolve_neg()",
    "clone": lambda leaf, _: f"{leaf}.clone()",
    "reshape": lambda leaf, step: f"{leaf}.reshape({_numbers(step['shape'])})",
    "permute": lambda leaf, step: f"{leaf}.permute({_numbers(step['dims'])})",
    "nan_to_num": lambda leaf, _: f"{leaf}.nan_to_num()",
    "clamp_values": lambda leaf, step: f"{leaf}.clamp({step['low']}, {step['high']})",
    "replace_value": lambda leaf, step: f"{leaf}.masked_fill({leaf} == {step['old']}, {step['new']})",
    "clamp_dim": lambda leaf, step: f"{leaf}.narrow({step['dim']}, 0, {step['size']})",
    "to_tensor": lambda leaf, step: f"torch.as_tensor({leaf}, dtype=torch.{step['dtype']})",
}


def _numbers(value: JsonValue) -> str:
    return str(tuple(value)) if isinstance(value, list) else "()"


def treated_call(inputs: InputSet, steps: Sequence[Step]) -> str | None:
    """Arguments of the treated call, as between the parentheses of a call; None for steps that have no expression."""
    leaves = {path: path for path, _ in inputs.leaves()}
    template: Step | None = None
    for step in steps:
        name, path = str(step.get("op")), step.get("path")
        if name == "tree" and template is None:
            template = step
        elif name in _LEAF_STEPS and path in leaves:
            leaves[str(path)] = _LEAF_STEPS[name](leaves[str(path)], step)
        else:
            return None
    if template is None:
        return _parentheses(_rebuilt(inputs.args, "args", leaves), _rebuilt(inputs.kwargs, "kwargs", leaves))
    args, kwargs = (_filled(template.get(name), leaves) for name in ("args", "kwargs"))
    return None if args is None or kwargs is None else _parentheses(args, kwargs)


def _parentheses(args: str, kwargs: str) -> str:
    """A tuple's text without its own parentheses, and no keywords where there are none."""
    inner = args[1:-1].rstrip(",") if args.startswith("(") else f"*{args}"
    return ", ".join(part for part in (inner, "" if kwargs == "{}" else f"**{kwargs}") if part)


def _rebuilt(tree: Tree[LeafValue], path: str, leaves: Mapping[str, str]) -> str:
    """The tree with its changed leaves; a part in which nothing changed by its name alone."""
    if isinstance(tree, Leaf):
        return leaves[path]
    parts = [_rebuilt(child, child_path(path, tree, at), leaves) for at, child in enumerate(tree.children)]
    if all(part == child_path(path, tree, at) for at, part in enumerate(parts)):
        return path
    if tree.type in MAPPINGS:
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(tree.keys, parts, strict=True)) + "}"
    opening, closing = ("[", "]") if tree.type == "list" else ("(", ",)")
    return opening + ", ".join(parts) + closing


def _filled(template: JsonValue, leaves: Mapping[str, str]) -> str | None:
    """The expression of a template as the treatments write it: leaves, values, tuples, lists and dicts."""
    match template:
        case {"leaf": str(path)}:
            return leaves.get(path)
        case {"tensor_of": str(path), "dtype": str(dtype)}:
            return f"torch.tensor({path}, dtype=torch.{dtype})"
        case {"value": value}:
            return repr(value)
        case {"tuple": list(items)}:
            return _joined("(", [_filled(item, leaves) for item in items], ",)" if items else ")")
        case {"list": list(items)}:
            return _joined("[", [_filled(item, leaves) for item in items], "]")
        case {"dict": list(pairs)}:
            named = [(pair[0], _filled(pair[1], leaves)) for pair in pairs if isinstance(pair, list) and len(pair) == 2]
            return _joined("{", [None if text is None else f"{key!r}: {text}" for key, text in named], "}")
    return None


def _joined(opening: str, parts: Sequence[str | None], closing: str) -> str | None:
    known = [part for part in parts if part is not None]
    return opening + ", ".join(known) + closing if len(known) == len(parts) else None
