"""Changes of a call at the boundary of the contract, most telling first.

A change is a value: of one leaf or one symbol, or the call as a whole. Its rank orders it: what goes wrong in silence
most often (dtypes, strides, indices) comes before what is refused anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice, permutations

from aotidoctor.model.contract import Contract, Dim, LeafSpec
from aotidoctor.model.dtypes import contiguous_stride
from aotidoctor.model.expr import Sym, evaluate, solve
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record
from aotidoctor.model.tree import MAPPINGS, Container, Tree

# The likeliest mix-ups first, for each kind of dtype; all others are asked when there is time.
_LIKELY = {
    "float": ("float64", "float16", "bfloat16", "int64"),
    "int": ("int32", "int64", "int16", "uint8", "float32"),
    "bool": ("uint8", "int64", "float32"),
    "complex": ("complex128", "complex64", "float32"),
}
_ALL = (
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
)  # fmt: skip
MOST_STRIDES = 6
MOST_PAIRS = 200
# Bounds beyond this mean that there is none.
_UNBOUNDED = 1 << 31


@record
class Change:
    """``symbols`` are sizes to take, ``fields`` are fields of the tensor at leaf ``leaf``, None stands for None."""

    axis: str
    subject: str
    text: str
    rank: int
    symbols: Mapping[str, int] | None = None
    leaf: int | None = None
    fields: JsonObject | None = None
    keys: str | None = None


def single_changes(contract: Contract, symbols: Mapping[str, int]) -> Iterator[Change]:
    """All changes of one thing. ``symbols`` are the sizes of the base call."""
    for name in symbols:
        yield from _sizes(contract, name, symbols)
    for leaf in contract.leaves:
        if leaf.input_index is not None:
            yield from _of_leaf(contract, leaf, symbols)
    yield from _keys(contract)


def _sizes(contract: Contract, name: str, symbols: Mapping[str, int]) -> Iterator[Change]:
    """The bounds of a symbol, one beyond, one and zero."""
    dims = [
        dim
        for leaf in contract.leaves
        for dim in leaf.dims or ()
        if dim.expr is not None and dim.expr.symbols == {name}
    ]
    low = max((value for dim in dims if (value := _bound(dim, dim.min)) is not None), default=None)
    high = min((value for dim in dims if (value := _bound(dim, dim.max)) is not None), default=None)
    if high is not None and high >= _UNBOUNDED:
        high = None
    wanted = [
        (3, "the least", low),
        (3, "the greatest", high),
        (6, "one above the greatest", None if high is None else high + 1),
        (6, "one below the least", None if low is None else low - 1),
        (7, "one", 1),
        (8, "zero", 0),
    ]
    seen = {symbols[name]}
    for rank, text, value in wanted:
        if value is not None and value >= 0 and value not in seen:
            seen.add(value)
            yield Change(axis="size", subject=name, text=f"{name} = {value} ({text})", rank=rank, symbols={name: value})


def _bound(dim: Dim, bound: int | None) -> int | None:
    """The bound of a dim as one of its symbol."""
    if bound is None or dim.expr is None:
        return None
    if isinstance(dim.expr, Sym):
        return bound
    solved = solve(dim.expr, bound)
    return solved[1] if solved is not None else None


def _of_leaf(contract: Contract, leaf: LeafSpec, symbols: Mapping[str, int]) -> Iterator[Change]:
    at, path = leaf.index, leaf.path
    for rank, dtype in _dtypes(leaf):
        yield Change(axis="dtype", subject=path, text=dtype, rank=rank, leaf=at, fields={"dtype": dtype})
    shape = _shape(leaf, symbols)
    if shape is not None:
        yield from _strides(leaf, shape)
        yield from _single_sizes(leaf, shape)
        yield Change(axis="rank", subject=path, text="a dim more", rank=9, leaf=at, fields=_as_shape((1, *shape)))
        if shape:
            yield Change(axis="rank", subject=path, text="a dim less", rank=9, leaf=at, fields=_as_shape(shape[1:]))
    if (leaf.dtype or "").startswith(("int", "uint")) and leaf.used is not False:
        yield from _values(contract, leaf)
    yield Change(axis="none", subject=path, text="None", rank=10, leaf=at)


def _dtypes(leaf: LeafSpec) -> Iterator[tuple[int, str]]:
    if leaf.dtype is None:
        return
    # uint8 is an int, bfloat16 a float.
    kind = next((kind for kind in _LIKELY if leaf.dtype.startswith((kind, f"u{kind}", f"b{kind}"))), "float")
    likely = [dtype for dtype in _LIKELY[kind] if dtype != leaf.dtype]
    yield from ((at, dtype) for at, dtype in enumerate(likely[:1]))
    yield from ((11, dtype) for dtype in likely[1:])
    yield from ((14, dtype) for dtype in _ALL if dtype != leaf.dtype and dtype not in likely)


def _shape(leaf: LeafSpec, symbols: Mapping[str, int]) -> tuple[int, ...] | None:
    if leaf.dims is None:
        return None
    sizes = [
        dim.static if dim.static is not None else evaluate(dim.expr, symbols) if dim.expr is not None else 4
        for dim in leaf.dims
    ]
    return tuple(size for size in sizes if size is not None) if None not in sizes else None


def _as_shape(shape: Sequence[int]) -> JsonObject:
    return {"shape": list(shape), "stride": None}


def _strides(leaf: LeafSpec, shape: tuple[int, ...]) -> Iterator[Change]:
    """Dims in another order in memory, and every second element."""
    found = 0
    for order in permutations(range(len(shape))):
        kept = [at for at in order if shape[at] != 1]
        if kept == sorted(kept) or found >= MOST_STRIDES:
            continue
        steps = _permuted(shape, order)
        text = f"strides {steps}"
        yield Change(
            axis="stride", subject=leaf.path, text=text, rank=1 + 10 * bool(found), leaf=leaf.index,
            fields={"stride": list(steps)},
        )  # fmt: skip
        found += 1
    if shape and shape[-1] > 1:
        wide = tuple(2 * step for step in contiguous_stride(shape))
        text = f"every second element: strides {wide}"
        yield Change(
            axis="stride", subject=leaf.path, text=text, rank=5, leaf=leaf.index, fields={"stride": list(wide)}
        )


def _permuted(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    steps, step = [0] * len(shape), 1
    for at in reversed(order):
        steps[at] = step
        step *= max(shape[at], 1)
    return tuple(steps)


def _single_sizes(leaf: LeafSpec, shape: tuple[int, ...]) -> Iterator[Change]:
    """One size of this tensor alone: a static one, one that others share, one that leaves a remainder."""
    for at, dim in enumerate(leaf.dims or ()):
        changed = (*shape[:at], shape[at] + 1, *shape[at + 1 :])
        plain = dim.static is not None or isinstance(dim.expr, Sym)
        axis = "size" if plain else "divisibility"
        yield Change(
            axis=axis,
            subject=leaf.path,
            text=f"{leaf.path}.shape[{at}] = {shape[at] + 1}, of this tensor alone",
            rank=4 if dim.static is None else 12,
            leaf=leaf.index,
            fields=_as_shape(changed),
        )


def _values(contract: Contract, leaf: LeafSpec) -> Iterator[Change]:
    """Indices at the bounds that kernels check, and one beyond."""
    bounds = sorted({int(text) for check in contract.bound_checks if (text := check.bound.rstrip("Ll")).isdecimal()})
    for bound in bounds[:4]:
        for rank, value, text in ((2, bound, "one beyond"), (3, bound - 1, "the last"), (13, -1, "from the end")):
            yield Change(
                axis="value",
                subject=leaf.path,
                text=f"all values {value} ({text}; a kernel checks against {bound})",
                rank=rank,
                leaf=leaf.index,
                fields={"low": value, "high": value},
            )


def _keys(contract: Contract) -> Iterator[Change]:
    """Each argument that is a dict with its keys in another order."""
    trees: list[tuple[str, Tree[int]]] = []
    if contract.args is not None and contract.kwargs is not None:
        trees += [(f"args[{at}]", child) for at, child in enumerate(contract.args.children)]
        trees += [
            (f"kwargs[{key!r}]", child)
            for key, child in zip(contract.kwargs.keys, contract.kwargs.children, strict=True)
        ]
    for path, tree in trees:
        if isinstance(tree, Container) and tree.type in MAPPINGS and len(tree.keys) > 1:
            yield Change(axis="keys", subject=path, text="keys in reverse order", rank=2, keys=path)


def pairs_of(single: Sequence[Change]) -> Iterator[tuple[Change, ...]]:
    """Two changes at once, of different subjects: sizes together, and what is most telling of each."""
    telling = [one for one in single if one.rank <= 5 and one.keys is None]
    couples = (pair for pair in combinations(telling, 2) if pair[0].subject != pair[1].subject)
    return islice(couples, MOST_PAIRS)
