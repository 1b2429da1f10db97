"""Leaves of a call or of a result, with the user's names for them, in torch's flattening order."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

Visit = Callable[[str, Any], Any]


def walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield ``(path, leaf)``. A dict in insertion order and a namedtuple by field, as torch's pytree does."""
    for key, child in children(value, path):
        if key is None:
            yield path, child
        else:
            yield from walk(child, key)


def walk_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Leaves of a call: ``args[...]`` first, then ``kwargs[...]``."""
    return [*walk(tuple(args), "args"), *walk(dict(kwargs), "kwargs")]


def tensors(value: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Those leaves that are tensors."""
    import torch

    return [(path, leaf) for path, leaf in value if isinstance(leaf, torch.Tensor)]


def result_tensors(result: Any) -> list[tuple[str, Any]]:
    """The tensors of what a call returned."""
    return tensors(list(walk(result, "result")))


def children(value: Any, path: str) -> list[tuple[str | None, Any]]:
    """Paths and values of the children; a leaf gives itself with None for its path."""
    if isinstance(value, dict | OrderedDict | defaultdict):
        return [(f"{path}[{key!r}]", child) for key, child in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f"{path}.{name}", child) for name, child in zip(value._fields, value, strict=True)]
    if type(value) in (list, tuple):
        return [(f"{path}[{index}]", child) for index, child in enumerate(value)]
    return _registered(value, path)


def _registered(value: Any, path: str) -> list[tuple[str | None, Any]]:
    """Children of a type that somebody registered with torch's pytree; anything else is a leaf."""
    from torch.utils._pytree import SUPPORTED_NODES

    node = SUPPORTED_NODES.get(type(value))
    if node is None:
        return [(None, value)]
    parts, _ = node.flatten_fn(value)
    return [(f"{path}[{index}]", child) for index, child in enumerate(parts)]


def rebuild(value: Any, path: str, visit: Visit) -> Any:
    """The same structure with each leaf replaced by ``visit(path, leaf)``."""
    below = children(value, path)
    if [key for key, _ in below] == [None]:
        return visit(path, value)
    new = [rebuild(child, str(key), visit) for key, child in below]
    if isinstance(value, dict):
        return _rebuilt_mapping(value, new)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*new)
    if type(value) in (list, tuple):
        return type(value)(new)
    return _rebuilt_registered(value, new)


def _rebuilt_mapping(value: Any, new: list[Any]) -> Any:
    """A library's own mapping may forbid ``update`` (``ModelOutput`` does): it is put together as pytree does it."""
    if type(value) in (dict, OrderedDict, defaultdict):
        made = value.copy()
        made.update(zip(value, new, strict=True))
        return made
    from torch.utils._pytree import SUPPORTED_NODES

    return _rebuilt_registered(value, new) if type(value) in SUPPORTED_NODES else dict(zip(value, new, strict=True))


def _rebuilt_registered(value: Any, new: list[Any]) -> Any:
    from torch.utils._pytree import SUPPORTED_NODES

    node = SUPPORTED_NODES[type(value)]
    return node.unflatten_fn(new, node.flatten_fn(value)[1])


def copied(_: str, leaf: Any) -> Any:
    """A copy of a tensor, anything else as it is; for ``rebuild``."""
    import torch

    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def rebuild_result(result: Any, visit: Visit) -> Any:
    """``rebuild`` of what a call returned; where a library's class refuses it, the leaves in a list.

    Results are only compared leaf by leaf, so the list holds all that matters.
    """
    try:
        return rebuild(result, "result", visit)
    except Exception:
        return [visit(path, leaf) for path, leaf in walk(result, "result")]
