"""Treatment steps on inputs: on one leaf, and on the structure of a call.

A step on a leaf is ``(step, leaf) -> new leaf``, one on the structure ``(step, args, kwargs) -> (args, kwargs, note)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from aotidoctor.model.jobs import InputsSource
from aotidoctor.worker.safe_load import load_inputs
from aotidoctor.worker.tensors import dtype_name, walk_call


class TreatmentError(Exception):
    """Raised for a step that cannot be applied to these inputs."""


# One leaf.
Step = dict[str, Any]
LeafChange = Callable[[Step, Any], Any]


def relay(step: Step, leaf: Any) -> Any:
    """Lay out the same values with the given strides, or contiguously."""
    wanted = step.get("stride")
    if wanted is None:
        return leaf.clone(memory_format=torch.contiguous_format)
    if len(wanted) != leaf.dim():
        raise TreatmentError(f"{len(wanted)} strides for {leaf.dim()} dims")
    new = torch.empty_strided(tuple(leaf.shape), tuple(wanted), dtype=leaf.dtype, device=leaf.device)
    return new.copy_(leaf)


def to_device(step: Step, leaf: Any) -> Any:
    """Move the values to another device; a tensor without values (meta) gets zeros."""
    if leaf.device.type == "meta":
        return torch.zeros_like(leaf, device=step["device"])
    return leaf.to(step["device"])


def to_dense(_: Step, leaf: Any) -> Any:
    """Make a plain strided tensor of a sparse, quantised, nested or subclass one."""
    if leaf.is_quantized:
        return leaf.dequantize()
    if leaf.is_nested:
        return torch.nested.to_padded_tensor(leaf, 0.0)
    return leaf.to_dense() if leaf.layout != torch.strided else leaf.detach().as_subclass(torch.Tensor)


def clamp_dim(step: Step, leaf: Any) -> Any:
    """Cut dim ``dim`` to ``size``, or extend it by repeating its last entry; an empty one by zeros."""
    dim, size = step["dim"], step["size"]
    if leaf.shape[dim] == 0 and size > 0:
        return leaf.new_zeros((*leaf.shape[:dim], size, *leaf.shape[dim + 1 :]))
    index = torch.arange(size, device=leaf.device).clamp(max=max(leaf.shape[dim] - 1, 0))
    return leaf.index_select(dim, index)


def slice_dim(step: Step, leaf: Any) -> Any:
    """Copy ``size`` entries of dim ``dim`` from ``start`` on, with the order of the dims in memory."""
    return leaf.narrow(step["dim"], step["start"], step["size"]).clone(memory_format=torch.preserve_format)


def nan_to_num(_: Step, leaf: Any) -> Any:
    """Replace NaN by zero, or Inf where there is no NaN."""
    bad = torch.isnan(leaf)
    return leaf.masked_fill(bad if bad.any() else torch.isinf(leaf), 0)


def mend_offsets(step: Step, leaf: Any) -> Any:
    """Correct offsets of bags: the first is 0, none is below the one before, none is above ``high``."""
    new = leaf.clone()
    new[:1] = 0
    return new.clamp(0, step["high"]).cummax(0).values.to(leaf.dtype)


def to_tensor(step: Step, leaf: Any) -> Any:
    """Make a tensor of a number, list or array."""
    return torch.as_tensor(leaf, dtype=dtype_of(step["dtype"]) if step.get("dtype") else None)


def make_tensor(document: Any) -> Any:
    """Make a tensor from its JSON description, with or without the key ``tensor`` around it."""
    leaf = document if isinstance(document, dict) and "tensor" in document else {"tensor": document}
    made, _ = load_inputs(InputsSource(document={"args": [leaf], "kwargs": {}}))
    return made[0]


def dtype_of(name: str) -> Any:
    """``torch.float32`` of ``float32``."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TreatmentError(f"no such dtype: {name}")
    return dtype


LEAF_STEPS: dict[str, LeafChange] = {
    "cast": lambda step, leaf: leaf.to(dtype_of(step["dtype"])),
    "contiguous": relay,
    "to": to_device,
    "resolve": lambda _, leaf: leaf.resolve_conj().resolve_neg(),
    "dense": to_dense,
    "reshape": lambda step, leaf: leaf.reshape(step["shape"]).contiguous(),
    "permute": lambda step, leaf: leaf.permute(step["dims"]),
    "clamp_dim": clamp_dim,
    "slice_dim": slice_dim,
    "clone": lambda _, leaf: leaf.detach().clone(),
    "nan_to_num": nan_to_num,
    "clamp_values": lambda step, leaf: leaf.clamp(step.get("low"), step.get("high")),
    "mend_offsets": mend_offsets,
    "replace_value": lambda step, leaf: leaf.masked_fill(leaf == step["old"], step["new"]),
    "to_tensor": to_tensor,
    "stand_in": lambda step, _: make_tensor(step["tensor"]),
    "set": lambda step, _: step["value"],
}


def describe_change(before: Any, after: Any) -> str:
    """What a step changed in a leaf: its properties, else how many of its values; empty if that cannot be seen."""
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return "→".join("tensor" if isinstance(one, torch.Tensor) else repr(one)[:60] for one in (before, after))
    looks = (dtype_name, lambda one: str(one.device), lambda one: str(one.layout), lambda one: type(one).__name__)
    found = [f"{look(before)}→{look(after)}" for look in looks if look(before) != look(after)]
    # Tensors of other layouts have no shape, no strides or no comparison.
    with suppress(RuntimeError, NotImplementedError):
        for look in () if found else (lambda one: tuple(one.shape), lambda one: one.stride()):
            found += [f"{look(before)}→{look(after)}"] if look(before) != look(after) else []
        if not found and (count := int((before != after).sum())):
            found.append(f"{count} values")
    return ", ".join(found)


# The structure of a call.
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
StructureChange = Callable[[Step, Args, Kwargs], tuple[Args, Kwargs, str]]

_KEY = re.compile(r"\[(-?\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]|\.(\w+)")


def rebuild_call(step: Step, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs, str]:
    """Rebuild the call from templates whose leaves name leaves of the old one."""
    leaves = _Leaves(args, kwargs)
    new_args = _build(step.get("args") or {"tuple": []}, leaves)
    new_kwargs = _build(step.get("kwargs") or {"dict": []}, leaves)
    if not isinstance(new_kwargs, dict):
        raise TreatmentError("the template of kwargs is not a dict")
    return tuple(new_args), new_kwargs, "arguments put in order"


def drop_leaf(step: Step, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs, str]:
    """Remove the argument, element or entry at ``path``."""
    new_args, new_kwargs = _edit(step["path"], args, kwargs, _without)
    return new_args, new_kwargs, f"drop {step['path']}"


def insert_leaf(step: Step, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs, str]:
    """Insert a tensor, made from its JSON description, at ``path``."""
    made = make_tensor(step["tensor"])

    def put(container: Any, key: Any) -> Any:
        if isinstance(container, dict):
            return {**container, key: made}
        return type(container)([*container[:key], made, *container[key:]])

    new_args, new_kwargs = _edit(step["path"], args, kwargs, put)
    return new_args, new_kwargs, f"insert {step['path']}"


class _Leaves:
    """Values for the templates of a call: leaves by path, and tensors made of lists of numbers."""

    def __init__(self, args: Args, kwargs: Kwargs) -> None:
        self._call: dict[str, Any] = {"args": args, "kwargs": kwargs}
        self._leaves = dict(walk_call(args, kwargs))

    def at(self, path: str) -> Any:
        if path not in self._leaves:
            raise TreatmentError(f"no such leaf: {path}")
        return self._leaves[path]

    def spelt(self, path: str, dtype: str) -> Any:
        root, keys = _parse(path)
        value = self._call[root]
        try:
            for key in keys:
                value = _child(value, key)
            return torch.tensor(value, dtype=dtype_of(dtype))
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise TreatmentError(f"{path} is not a written-out tensor of {dtype}: {error}") from error


def _build(template: Any, leaves: _Leaves) -> Any:
    match template:
        case {"leaf": str(path)}:
            return leaves.at(path)
        case {"tensor_of": str(path), "dtype": str(dtype)}:
            return leaves.spelt(path, dtype)
        case {"value": value}:
            return value
        case {"tuple": [*items]}:
            return tuple(_build(item, leaves) for item in items)
        case {"list": [*items]} | [*items]:
            return [_build(item, leaves) for item in items]
        case {"dict": [*pairs]}:
            return {key: _build(item, leaves) for key, item in pairs}
    raise TreatmentError(f"not a template: {template!r}"[:200])


def _edit(path: str, args: Args, kwargs: Kwargs, change: Callable[[Any, Any], Any]) -> tuple[Args, Kwargs]:
    root, keys = _parse(path)
    if root == "args":
        return tuple(_descend(tuple(args), keys, change)), kwargs
    return args, dict(_descend(dict(kwargs), keys, change))


def _descend(container: Any, keys: list[Any], change: Callable[[Any, Any], Any]) -> Any:
    if len(keys) == 1:
        return change(container, keys[0])
    try:
        child = _child(container, keys[0])
    except (LookupError, TypeError, AttributeError) as error:
        raise TreatmentError(f"no such place: {keys[0]!r}") from error
    return _replace(container, keys[0], _descend(child, keys[1:], change))


def _child(container: Any, key: Any) -> Any:
    return getattr(container, key[1:]) if _is_field(key) else container[key]


def _replace(container: Any, key: Any, value: Any) -> Any:
    if _is_field(key):
        return container._replace(**{key[1:]: value})
    if isinstance(container, dict):
        return {**container, key: value}
    return type(container)([*container[:key], value, *container[key + 1 :]])


def _without(container: Any, key: Any) -> Any:
    if isinstance(container, dict):
        if key not in container:
            raise TreatmentError(f"no such key: {key!r}")
        return {name: value for name, value in container.items() if name != key}
    if not isinstance(key, int) or not 0 <= key < len(container):
        raise TreatmentError(f"no such index: {key!r}")
    return type(container)([*container[:key], *container[key + 1 :]])


def _is_field(key: Any) -> bool:
    return isinstance(key, str) and key.startswith(".")


def _parse(path: str) -> tuple[str, list[Any]]:
    """``args[1]['a']`` -> ``args`` and ``[1, 'a']``; a namedtuple's field keeps its dot."""
    root = "kwargs" if path.startswith("kwargs") else "args"
    keys: list[Any] = []
    at = len(root)
    while at < len(path):
        found = _KEY.match(path, at)
        if found is None:
            raise TreatmentError(f"not a path: {path}")
        index, single, double, name = found.groups()
        text = single if single is not None else double
        keys.append(int(index) if index else f".{name}" if name else re.sub(r"\\(.)", r"\1", text))
        at = found.end()
    if not keys or not path.startswith(root):
        raise TreatmentError(f"not a path: {path}")
    return root, keys


TREE_STEPS: dict[str, StructureChange] = {"tree": rebuild_call, "drop": drop_leaf, "insert": insert_leaf}
