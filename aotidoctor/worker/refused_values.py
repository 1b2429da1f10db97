"""Find which operator of a reference refused the call, and the inputs and the element that it refused.

The call is made again with every operator watched: what an operator raises is about its own arguments, and each tensor
remembers the inputs that it was computed from. The element is looked for where the message names a range or a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from aotidoctor.model.torch_names import index_at
from aotidoctor.worker.call import ModelCall

_NUMBER = r"(-?\d{1,9}(?:\.\d{1,9})?)"
_RANGE = re.compile(rf"(?:between|in (?:the )?(?:range|interval)) \[?{_NUMBER}(?:,| and) {_NUMBER}")
_VALUE = re.compile(r"(?:index|Target|element|value|id=) ?(-?\d{1,18})\b")
_LARGEST = 1 << 24


class _WatchedOperators(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
    """Remembers from which inputs each tensor comes, and the first operator that raised, with its tensors."""

    def __init__(self, inputs: Sequence[tuple[str, Any]]) -> None:
        super().__init__()
        self.origins: Any = WeakIdKeyDictionary()
        for path, tensor in inputs:
            self.origins[tensor] = (path,)
        self.operator: str | None = None
        self.tensors: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [one for one in tree_leaves((args, kwargs or {})) if isinstance(one, torch.Tensor)]
        try:
            result = func(*args, **(kwargs or {}))
        except Exception:
            if self.operator is None:
                self.operator, self.tensors = str(func), tensors
            raise
        paths = tuple(dict.fromkeys(path for one in tensors for path in self.origins.get(one, ())))
        for one in tree_leaves(result):
            if isinstance(one, torch.Tensor):
                self.origins[one] = tuple(dict.fromkeys((*self.origins.get(one, ()), *paths)))
        return result


def refused_values(reference: Callable[..., Any], call: ModelCall, message: str) -> dict[str, Any]:
    """Facts of a call that raises: ``operator``, ``paths`` of the inputs behind its tensors, ``element``, ``value``."""
    inputs = call.tensors()
    watched = _WatchedOperators(inputs)
    try:
        with torch.no_grad(), watched:
            reference(*call.args, **call.kwargs)
    except Exception:
        if watched.operator is None:
            return {}
    else:
        return {}
    direct = [(path, tensor) for tensor in watched.tensors for path, own in inputs if own is tensor]
    facts: dict[str, Any] = {"operator": watched.operator}
    for path, tensor in direct:
        with suppress(RuntimeError, NotImplementedError):
            found = _element(tensor, message)
            if found is not None:
                at, value = found
                return {**facts, "paths": [path], "element": f"{path}[{', '.join(map(str, at))}]", "value": value}
    behind = [watched.origins.get(tensor, ()) for tensor in watched.tensors]
    return {**facts, "paths": list(dict.fromkeys(path for paths in behind for path in paths))}


def _element(tensor: Any, message: str) -> tuple[list[int], float | int] | None:
    """The first element outside of the range that the message names, or of the value that it complains about."""
    if not 0 < tensor.numel() <= _LARGEST or tensor.is_complex():
        return None
    if (between := _RANGE.search(message)) is not None:
        bad = ~((tensor >= float(between[1])) & (tensor <= float(between[2])))
    elif (named := _VALUE.search(message)) is not None and not tensor.is_floating_point():
        bad = tensor == int(named[1])
    else:
        return None
    places = bad.flatten().nonzero()
    if not len(places):
        return None
    at = int(places[0])
    return index_at(at, tuple(tensor.shape)), tensor.flatten()[at].item()
