"""Sizes and strides that satisfy a contract: small, inside the ranges, equal where a symbol is shared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, permutations
from math import prod

from aotidoctor.model.contract import Contract, Dim, LeafSpec
from aotidoctor.model.dtypes import contiguous_stride
from aotidoctor.model.expr import evaluate

SMALL = (4, 2, 3, 5, 6, 8, 16, 32, 64, 1)
MOST = 4096
MAX_PERMUTED = 5
# Of float32, 1 GiB: what reads more is not tried with made-up inputs.
MOST_READ = 1 << 28


def choose_symbols(contract: Contract) -> tuple[dict[str, int], list[str]]:
    """A value for every symbol that a dim shows, and a note for each that no small value suits."""
    dims = [dim for leaf in contract.leaves for dim in leaf.dims or () if dim.static is None and dim.expr is not None]
    names = sorted({name for dim in dims if dim.expr is not None for name in dim.expr.symbols})
    smallest = _relations_unknown(contract)
    chosen: dict[str, int] = {}
    notes: list[str] = []
    for name in names:
        alone = [dim for dim in dims if dim.expr is not None and dim.expr.symbols == {name}]
        value = next((size for size in _candidates(alone, smallest=smallest) if _suits(alone, {name: size})), None)
        if value is None:
            notes.append(f"no size up to {MOST} of {name} is inside all ranges; made with {SMALL[0]}")
        chosen[name] = SMALL[0] if value is None else value
    return _adjusted(dims, chosen), notes


def _relations_unknown(contract: Contract) -> bool:
    """Whether the contract does not tell which dynamic dims belong together, as one that was recovered does not.

    Then every dim gets its lower bound: sizes that grow with one another (``s0``, ``s0 + 1``, ``2*s0``) take those
    together.
    """
    dims = [dim for leaf in contract.leaves for dim in leaf.dims or () if dim.static is None]
    return any(dim.expr is None for dim in dims) and any(dim.min for dim in dims)


def _candidates(dims: Iterable[Dim], *, smallest: bool = False) -> Iterator[int]:
    """Small sizes first, then the bounds themselves, then all others up to ``MOST``; ``smallest``: from below."""
    bounds = [bound for dim in dims for bound in (dim.min, dim.max) if bound is not None and 0 < bound < 1 << 31]
    if smallest:
        return chain(range(2, MOST), (1,), sorted(bounds))
    return chain(SMALL, sorted(bounds), range(7, MOST))


def _suits(dims: Iterable[Dim], values: Mapping[str, int]) -> bool:
    for dim in dims:
        size = None if dim.expr is None else evaluate(dim.expr, values)
        if size is None or size < 0:
            continue
        if (dim.min is not None and size < dim.min) or (dim.max is not None and size > dim.max):
            return False
    return True


def _adjusted(dims: Iterable[Dim], chosen: dict[str, int]) -> dict[str, int]:
    """Change single symbols where a dim of several symbols is out of its range."""
    mixed = [dim for dim in dims if dim.expr is not None and len(dim.expr.symbols) > 1]
    if _suits(mixed, chosen):
        return chosen
    for name in chosen:
        for size in _candidates(dims):
            trial = {**chosen, name: size}
            if _suits(dims, trial):
                return trial
    return chosen


def choose_shape(leaf: LeafSpec, symbols: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes of one tensor; dims that the contract does not tell are small.

    Where their number is not known, there is one more for as many elements as a kernel reads.
    """
    if leaf.rank is not None:
        return tuple(_size(dim, symbols) for dim in leaf.dims) if leaf.dims is not None else (SMALL[0],) * leaf.rank
    shown = tuple(_size(dim, symbols) for dim in leaf.dims or ())
    extents = (evaluate(one.extent, symbols) for one in leaf.reads)
    rows = prod(shown)
    more = -(-max((extent for extent in extents if extent is not None), default=1) // max(rows, 1))
    return (*shown, min(more, MOST_READ)) if more > 1 or not shown else shown


def _size(dim: Dim, symbols: Mapping[str, int]) -> int:
    if dim.static is not None:
        return dim.static
    size = None if dim.expr is None else evaluate(dim.expr, symbols)
    if size is not None and size >= 0:
        return size
    if dim.min:
        return dim.min
    return SMALL[0] if dim.max is None else min(SMALL[0], dim.max)


def choose_stride(leaf: LeafSpec, shape: tuple[int, ...], symbols: Mapping[str, int]) -> tuple[int, ...] | None:
    """Strides in elements, None for a contiguous tensor."""
    known = _known_strides(leaf, symbols)
    if known is None or len(known) != len(shape):
        return None
    plain = contiguous_stride(shape)
    if _agrees(known, plain):
        return None
    found = _dense(known, shape)
    if found is None:
        found = tuple(step if want is None else want for want, step in zip(known, plain, strict=True))
    return found


def _known_strides(leaf: LeafSpec, symbols: Mapping[str, int]) -> tuple[int | None, ...] | None:
    if leaf.stride_exprs is not None:
        return tuple(None if expr is None else evaluate(expr, symbols) for expr in leaf.stride_exprs)
    return leaf.strides


def _agrees(known: tuple[int | None, ...], stride: tuple[int, ...]) -> bool:
    return all(want is None or want == step for want, step in zip(known, stride, strict=True))


def _dense(known: tuple[int | None, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides of a permuted but dense tensor (channels_last, transposed) that agree with the known ones."""
    if len(shape) > MAX_PERMUTED:
        return None
    for order in permutations(range(len(shape))):
        inner = contiguous_stride(tuple(shape[dim] for dim in order))
        stride = [0] * len(shape)
        for position, dim in enumerate(order):
            stride[dim] = inner[position]
        if _agrees(known, tuple(stride)):
            return tuple(stride)
    return None
