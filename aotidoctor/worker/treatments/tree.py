"""Treatment steps on the structure of a call: ``(step, args, kwargs) -> (args, kwargs, note)``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from aotidoctor.worker.leaves import walk_call
from aotidoctor.worker.treatments.errors import TreatmentError
from aotidoctor.worker.treatments.leaf import dtype_of, made_tensor

Step = dict[str, Any]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Change = Callable[[Step, Args, Kwargs], tuple[Args, Kwargs, str]]

_KEY = re.compile(r"\[(-?\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]|\.(\w+)")


def tree(step: Step, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs, str]:
    """Build the call anew from templates whose leaves name leaves of the old one."""
    leaves = _Leaves(args, kwargs)
    new_args = _build(step.get("args") or {"tuple": []}, leaves)
    new_kwargs = _build(step.get("kwargs") or {"dict": []}, leaves)
    if not isinstance(new_kwargs, dict):
        raise TreatmentError("the template of kwargs is not a dict")
    return tuple(new_args), new_kwargs, "arguments put in order"


def drop(step: Step, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs, str]:
    """Leave out the argument, element or entry at ``path``."""
    new_args, new_kwargs = _edit(step["path"], args, kwargs, _without)
    return new_args, new_kwargs, f"drop {step['path']}"


def insert(step: Step, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs, str]:
    """Put a tensor, made from its JSON description, where ``path`` will then find it."""
    made = made_tensor(step["tensor"])

    def put(container: Any, key: Any) -> Any:
        return _with(container, key, made)

    new_args, new_kwargs = _edit(step["path"], args, kwargs, put)
    return new_args, new_kwargs, f"insert {step['path']}"


class _Leaves:
    """What the templates of a call may name: leaves, and lists of numbers to make tensors of."""

    def __init__(self, args: Args, kwargs: Kwargs) -> None:
        self._call: dict[str, Any] = {"args": args, "kwargs": kwargs}
        self._leaves = dict(walk_call(args, kwargs))

    def at(self, path: str) -> Any:
        if path not in self._leaves:
            raise TreatmentError(f"no such leaf: {path}")
        return self._leaves[path]

    def spelt(self, path: str, dtype: str) -> Any:
        import torch

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


def _with(container: Any, key: Any, value: Any) -> Any:
    if isinstance(container, dict):
        return {**container, key: value}
    return type(container)([*container[:key], value, *container[key:]])


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


TREE_STEPS: dict[str, Change] = {"tree": tree, "drop": drop, "insert": insert}
