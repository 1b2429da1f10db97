"""Dims of the config against the dims that were compiled, one tensor at a time. The batch dim is not compared here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aotidoctor.model.contract import Dim
from aotidoctor.model.expr import linear, solve
from aotidoctor.model.record import record
from aotidoctor.model.serving_config import Given, Position, TensorConfig

VARIABLE = -1


@record
class Mismatch:
    """One difference. ``dim`` counts in the compiled shape, None where the number of dims differs.

    ``kind``: ``rank``, ``batch-written`` (the batch dim stands in dims), ``batch-missing`` (dims leave out the first
    dim, and nothing is batched), ``scalar`` (one element for a tensor without dims), ``size``, ``wider`` (any size for
    a static dim), ``range``, ``below-two`` (1 where 2 was compiled as the least, which runs right), ``multiple``.
    """

    kind: str
    observed: str
    expected: str
    at: Position
    dim: int | None = None


def compare(tensor: TensorConfig, compiled: Sequence[Dim], *, batched: bool) -> tuple[Mismatch, ...]:
    """What differs between a tensor of the config, as the backend sees it, and the compiled dims."""
    given = tensor.shape
    expected = compiled[1:] if batched else compiled
    if len(given) != len(expected) or (batched and not compiled):
        return (_other_rank(tensor, compiled, batched=batched),)
    first = 1 if batched else 0
    pairs = enumerate(zip(given, expected, strict=True), start=first)
    found = (_dim(dim, item, spec) for dim, (item, spec) in pairs)
    return tuple(item for item in found if item is not None)


def _other_rank(tensor: TensorConfig, compiled: Sequence[Dim], *, batched: bool) -> Mismatch:
    given = tensor.shape
    kind = "rank"
    if batched and compiled and _fits(given, compiled):
        kind = "batch-written"
    elif not batched and compiled and _fits(given, compiled[1:]):
        kind = "batch-missing"
    elif not batched and not compiled and [item.value for item in given] == [1]:
        kind = "scalar"
    shown = f"[{', '.join(str(item.value) for item in given)}]" + (" after the batch dim" if batched else "")
    place = given[0].at if given else tensor.at
    return Mismatch(kind=kind, observed=shown, expected=dims_text(compiled), at=place)


def _fits(given: Sequence[Given[int]], compiled: Sequence[Dim]) -> bool:
    """Whether the sizes can be those of the dims; ``-1`` stands for a dynamic one."""
    return len(given) == len(compiled) and all(
        spec.static in (None, item.value) for item, spec in zip(given, compiled, strict=True)
    )


def _dim(dim: int, given: Given[int], spec: Dim) -> Mismatch | None:
    kind = _kind(given.value, spec)
    if kind is None:
        return None
    return Mismatch(kind=kind, observed=str(given.value), expected=dim_text(spec), at=given.at, dim=dim)


def _kind(value: int, spec: Dim) -> str | None:
    if spec.static is not None:
        return None if value == spec.static else "wider" if value == VARIABLE else "size"
    if value == VARIABLE:
        return None
    if spec.max is not None and value > spec.max:
        return "range"
    if spec.min is not None and value < spec.min:
        return "below-two" if (value, spec.min) == (1, 2) else "range"
    if spec.expr is not None and linear(spec.expr) is not None and solve(spec.expr, value) is None:
        return "multiple" if spec.expr.symbols else None
    return None


def fixed_symbols(
    tensor: TensorConfig, compiled: Sequence[Dim], *, batched: bool
) -> Iterator[tuple[str, int, Given[int]]]:
    """``(symbol, value, place)`` for each dynamic dim that the config gives one size."""
    expected = compiled[1:] if batched else compiled
    if len(tensor.shape) != len(expected):
        return
    for given, spec in zip(tensor.shape, expected, strict=True):
        solved = solve(spec.expr, given.value) if spec.static is None and spec.expr is not None else None
        if solved is not None and given.value != VARIABLE:
            yield solved[0], solved[1], given


def dims_text(dims: Sequence[Dim]) -> str:
    """``[s17:2..64, 1024]``."""
    return f"[{', '.join(map(dim_text, dims))}]"


def dim_text(dim: Dim) -> str:
    """``16``, ``s77:2..64``, ``s77``, ``?``."""
    if dim.static is not None:
        return str(dim.static)
    name = str(dim.expr) if dim.expr is not None else ""
    limits = range_text(dim)
    return f"{name}:{limits}" if name and limits else name or limits or "?"


def range_text(dim: Dim) -> str:
    """``2..64``, ``2..``; empty where there are no bounds."""
    if dim.static is not None or (dim.min is None and dim.max is None):
        return ""
    return f"{'' if dim.min is None else dim.min}..{'' if dim.max is None else dim.max}"
