"""Random movements of the size of rounding errors, for a float64 run that shows what rounding can do.

A result moves by up to half an eps of the dtype that the program has at that node, relative to the element: the worst
of one rounding. Operators that only move, choose or negate elements round nothing. What is not pointwise combines
elements, in an order that is the compiler's to choose: such operators also get inputs, and a result, moved by what n
additions in float32 cost at random (``sqrt(n) / 4`` eps, the order of magnitude of vectorised loops).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils import _pytree as pytree

_EXACT_NAMES = """
    abs amax amin arange cat ceil clamp clamp_max clamp_min clone concat constant_pad_nd contiguous copy_ cummax cummin
    detach_ embedding empty empty_like empty_strided eye fill_ flip floor full full_like gather index index_select
    lift_fresh_copy masked_fill masked_fill_ max max_pool1d max_pool2d max_pool2d_with_indices maximum min minimum neg
    new_empty new_full new_ones new_zeros one_hot ones ones_like pad relu relu_ repeat repeat_interleave roll round
    scatter select_scatter sign slice_scatter sort stack tile topk tril triu trunc where zero_ zeros zeros_like
"""
_EXACT = frozenset(_EXACT_NAMES.split())
_CASTS = frozenset(("to", "_to_copy", "type_as", "convert_element_type"))
_FLOAT32_EPS = torch.finfo(torch.float32).eps


class Noise:
    """Noise of one run; ``seed`` makes it repeatable."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[Any, Any] = {}

    def on_inputs(self, n: Any, args: Any) -> Any:
        """Arguments of an operator that combines elements, moved by what its order may cost."""
        if not _combines(n):
            return args
        size = _FLOAT32_EPS * max(1.0, math.sqrt(_additions(n)) / 4)
        return pytree.tree_map(lambda one: self._moved(one, size) if _is_wide(one) else one, args)

    def on_result(self, n: Any, result: Any) -> Any:
        """The result of a node, moved by its rounding."""
        if _name(n) in _EXACT or not isinstance(n.target, torch._ops.OpOverload):
            return result
        writes = any(one.alias_info is not None and one.alias_info.is_write for one in n.target._schema.returns)
        alias = any(one.alias_info is not None for one in n.target._schema.returns)
        if alias and not writes and not _narrows(n):
            return result
        leaves, spec = pytree.tree_flatten(result)
        own = pytree.tree_leaves(n.meta.get("val"))
        if len(own) != len(leaves):
            return result
        moved = [self._rounded(n, leaf, meta, in_place=writes) for leaf, meta in zip(leaves, own, strict=True)]
        return pytree.tree_unflatten(moved, spec)

    def _rounded(self, n: Any, leaf: Any, meta: Any, *, in_place: bool) -> Any:
        if (
            not _is_wide(leaf)
            or not isinstance(meta, torch.Tensor)
            or not meta.dtype.is_floating_point | meta.is_complex()
        ):
            return leaf
        size = float(torch.finfo(meta.dtype).eps) / 2
        if _combines(n):
            size = max(size, _FLOAT32_EPS * math.sqrt(_additions(n)) / 4) if size >= _FLOAT32_EPS / 2 else size
        return leaf.mul_(self._factor(leaf, size)) if in_place else self._moved(leaf, size)

    def on_argument(self, tensor: Any, dtype: Any) -> Any:
        """An argument of an operator that is run in its own dtype, before the cast to it."""
        return self._moved(tensor, float(torch.finfo(dtype).eps) / 2)

    def _moved(self, tensor: Any, size: float) -> Any:
        factor = self._factor(tensor, size)
        return factor.mul_(tensor) if tensor.dtype == factor.dtype else tensor * factor

    def _factor(self, tensor: Any, size: float) -> Any:
        generator = self._generators.get(tensor.device)
        if generator is None:
            generator = torch.Generator(device=tensor.device)
            generator.manual_seed(self._seed)
            self._generators[tensor.device] = generator
        spread = torch.rand(tensor.shape, dtype=torch.float64, device=tensor.device, generator=generator)
        # In place: of a large weight there is one more copy, not five.
        return spread.mul_(2.0).sub_(1.0).mul_(size).add_(1.0)


def _name(n: Any) -> str:
    """``linear`` of ``aten.linear.default``."""
    parts = str(n.target).split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def _combines(n: Any) -> bool:
    """Whether one element of the result may come of several."""
    if _name(n) in _EXACT or _name(n) in _CASTS or not isinstance(n.target, torch._ops.OpOverload):
        return False
    views = any(one.alias_info is not None for one in n.target._schema.returns)
    return not views and torch.Tag.pointwise not in n.target.tags


def _is_wide(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float64, torch.complex128)


def _additions(n: Any) -> float:
    """How many products or elements go into one element of the result, from the shapes that the program has."""
    metas = [one.meta.get("val") for one in n.all_input_nodes]
    sizes = sorted((meta.numel() for meta in metas if isinstance(meta, torch.Tensor) and meta.numel()), reverse=True)
    results = [one for one in pytree.tree_leaves(n.meta.get("val")) if isinstance(one, torch.Tensor) and one.numel()]
    try:
        numbers = [int(size) for size in sizes[:2]]
        result = int(results[0].numel()) if results else 0
    except Exception:  # Sizes of the run may have no value in the graph.
        return 1.0
    if not numbers or not result:
        return 1.0
    ratio = numbers[0] / result
    product = numbers[0] * numbers[-1] / result if len(numbers) > 1 else 0.0
    return max(1.0, ratio, math.sqrt(product))


def _narrows(n: Any) -> bool:
    """Whether a node is a cast to a coarser dtype."""
    if _name(n) not in _CASTS or not n.all_input_nodes:
        return False
    before, after = n.all_input_nodes[0].meta.get("val"), n.meta.get("val")
    tensors = isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor)
    if not tensors or not (before.dtype.is_floating_point and after.dtype.is_floating_point):
        return False
    return bool(torch.finfo(after.dtype).eps > torch.finfo(before.dtype).eps)
