"""Plan the calls of a sweep: the base call, changes of it at the boundary of the contract, and pairs of those.

A change concerns one leaf, one symbol, or the call as a whole. Changes are ordered by rank: those that fail silently
most often (dtypes, strides, indices) come before those that are refused anyway.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice, permutations

from aotidoctor.model.contract import Dim, LeafSpec, ModelContract
from aotidoctor.model.expr import Sym, evaluate, solve
from aotidoctor.model.inputs import MAPPINGS, Container, Tree
from aotidoctor.model.record import JsonObject, JsonValue, record
from aotidoctor.model.torch_names import ITEMSIZE, contiguous_stride
from aotidoctor.readers.inputs.live_and_generated import choose_symbols, document_of, generated_leaves

# Changes, most useful first. The likeliest mix-ups first, for each kind of dtype; all others follow if there is time.
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
# Larger bounds count as none.
_UNBOUNDED = 1 << 31


@record
class CallChange:
    """A change of the base call: sizes for ``symbols``, or ``fields`` of the tensor at ``leaf`` (None: pass None)."""

    axis: str
    subject: str
    text: str
    rank: int
    symbols: Mapping[str, int] | None = None
    leaf: int | None = None
    fields: JsonObject | None = None
    keys: str | None = None


def single_changes(contract: ModelContract, symbols: Mapping[str, int]) -> Iterator[CallChange]:
    """All single changes. ``symbols`` are the sizes of the base call."""
    for name in symbols:
        yield from _sizes(contract, name, symbols)
    for leaf in contract.leaves:
        if leaf.input_index is not None:
            yield from _of_leaf(contract, leaf, symbols)
    # Each argument that is a dict with its keys in another order.
    trees: list[tuple[str, Tree[int]]] = []
    if contract.args is not None and contract.kwargs is not None:
        trees += [(f"args[{at}]", child) for at, child in enumerate(contract.args.children)]
        trees += [
            (f"kwargs[{key!r}]", child)
            for key, child in zip(contract.kwargs.keys, contract.kwargs.children, strict=True)
        ]
    for path, tree in trees:
        if isinstance(tree, Container) and tree.type in MAPPINGS and len(tree.keys) > 1:
            yield CallChange(axis="keys", subject=path, text="keys in reverse order", rank=2, keys=path)


def _sizes(contract: ModelContract, name: str, symbols: Mapping[str, int]) -> Iterator[CallChange]:
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
    values = [
        (3, "the least", low),
        (3, "the greatest", high),
        (6, "one above the greatest", None if high is None else high + 1),
        (6, "one below the least", None if low is None else low - 1),
        (7, "one", 1),
        (8, "zero", 0),
    ]
    used = {symbols[name]}
    for rank, text, value in values:
        if value is not None and value >= 0 and value not in used:
            used.add(value)
            yield CallChange(
                axis="size", subject=name, text=f"{name} = {value} ({text})", rank=rank, symbols={name: value}
            )


def _bound(dim: Dim, bound: int | None) -> int | None:
    """Convert a bound of a dim to one of its symbol."""
    if bound is None or dim.expr is None:
        return None
    if isinstance(dim.expr, Sym):
        return bound
    solved = solve(dim.expr, bound)
    return solved[1] if solved is not None else None


def _of_leaf(contract: ModelContract, leaf: LeafSpec, symbols: Mapping[str, int]) -> Iterator[CallChange]:
    at, path = leaf.index, leaf.path
    if leaf.dtype is not None:
        # uint8 is an int, bfloat16 a float.
        kind = next((kind for kind in _LIKELY if leaf.dtype.startswith((kind, f"u{kind}", f"b{kind}"))), "float")
        likely = [dtype for dtype in _LIKELY[kind] if dtype != leaf.dtype]
        others = [dtype for dtype in _ALL if dtype != leaf.dtype and dtype not in likely]
        for rank, dtypes in ((0, likely[:1]), (11, likely[1:]), (14, others)):
            for dtype in dtypes:
                yield CallChange(axis="dtype", subject=path, text=dtype, rank=rank, leaf=at, fields={"dtype": dtype})
    sizes = [
        dim.static if dim.static is not None else evaluate(dim.expr, symbols) if dim.expr is not None else 4
        for dim in leaf.dims or ()
    ]
    shape = tuple(size for size in sizes if size is not None)
    if leaf.dims is not None and len(shape) == len(leaf.dims):
        yield from _stride_changes(leaf, shape)
        yield from _single_sizes(leaf, shape)
        yield CallChange(axis="rank", subject=path, text="a dim more", rank=9, leaf=at, fields=_as_shape((1, *shape)))
        if shape:
            yield CallChange(axis="rank", subject=path, text="a dim less", rank=9, leaf=at, fields=_as_shape(shape[1:]))
    if (leaf.dtype or "").startswith(("int", "uint")) and leaf.used is not False:
        # Indices at the bounds that kernels check, and one beyond.
        bounds = {int(text) for check in contract.bound_checks if (text := check.bound.rstrip("Ll")).isdecimal()}
        for bound in sorted(bounds)[:4]:
            for rank, value, place in ((2, bound, "one beyond"), (3, bound - 1, "the last"), (13, -1, "from the end")):
                text = f"all values {value} ({place}; a kernel checks against {bound})"
                fields: JsonObject = {"low": value, "high": value}
                yield CallChange(axis="value", subject=path, text=text, rank=rank, leaf=at, fields=fields)
    yield CallChange(axis="none", subject=path, text="None", rank=10, leaf=at)


def _stride_changes(leaf: LeafSpec, shape: tuple[int, ...]) -> Iterator[CallChange]:
    """Dims in another order in memory, and every second element."""
    found: list[tuple[int, str, tuple[int, ...]]] = []
    for order in permutations(range(len(shape))):
        moved = [at for at in order if shape[at] != 1]
        if moved == sorted(moved) or len(found) >= MOST_STRIDES:
            continue
        strides, step = [0] * len(shape), 1
        for at in reversed(order):
            strides[at] = step
            step *= max(shape[at], 1)
        found.append((1 + 10 * bool(found), f"strides {tuple(strides)}", tuple(strides)))
    if shape and shape[-1] > 1:
        wide = tuple(2 * step for step in contiguous_stride(shape))
        found.append((5, f"every second element: strides {wide}", wide))
    for rank, text, stride in found:
        yield CallChange(
            axis="stride", subject=leaf.path, text=text, rank=rank, leaf=leaf.index, fields={"stride": list(stride)}
        )


def _as_shape(shape: Sequence[int]) -> JsonObject:
    return {"shape": list(shape), "stride": None}


def _single_sizes(leaf: LeafSpec, shape: tuple[int, ...]) -> Iterator[CallChange]:
    """Change one size of this tensor alone: a static one, one that others share, one that leaves a remainder."""
    for at, dim in enumerate(leaf.dims or ()):
        plain = dim.static is not None or isinstance(dim.expr, Sym)
        yield CallChange(
            axis="size" if plain else "divisibility",
            subject=leaf.path,
            text=f"{leaf.path}.shape[{at}] = {shape[at] + 1}, of this tensor alone",
            rank=4 if dim.static is None else 12,
            leaf=leaf.index,
            fields=_as_shape((*shape[:at], shape[at] + 1, *shape[at + 1 :])),
        )


def pairs_of(single: Sequence[CallChange]) -> Iterator[tuple[CallChange, ...]]:
    """Pairs of the most useful changes, of different subjects."""
    useful = [one for one in single if one.rank <= 5 and one.keys is None]
    couples = (pair for pair in combinations(useful, 2) if pair[0].subject != pair[1].subject)
    return islice(couples, MOST_PAIRS)


# The calls.
MOST_BYTES = 256 << 20


@record
class SweepPoint:
    """One call; the worker makes it from ``document``. ``of_values``: one of its changes is of values."""

    axis: str
    subject: str
    text: str
    rank: int
    document: JsonObject
    of_values: bool = False


@record
class SweepPlan:
    """The calls in order, and notes about those that were left out."""

    points: tuple[SweepPoint, ...]
    left_out: tuple[str, ...]


def plan_calls(contract: ModelContract, baked: Mapping[str, str], *, seed: int = 0) -> SweepPlan:
    """Plan all calls. ``baked`` are the values of leaves that are no tensors, as texts by path."""
    notes: list[str] = []
    symbols, _ = choose_symbols(contract)
    single = sorted(single_changes(contract, symbols), key=lambda change: change.rank)
    changes: list[tuple[CallChange, ...]] = [(), *((one,) for one in single), *pairs_of(single)]
    points, large = [], 0
    for made in changes:
        sizes = {name: value for one in made for name, value in (one.symbols or {}).items()}
        leaves = generated_leaves(contract, {**symbols, **sizes}, seed, notes)
        # The values that were fixed at export, then the changes.
        for leaf in contract.leaves:
            if leaf.input_index is None and leaf.path in baked:
                leaves[leaf.index] = _literal(baked[leaf.path])
        for one in made:
            if one.leaf is not None:
                leaves[one.leaf] = _change_value(leaves[one.leaf], one.fields)
        if sum(_nbytes(value) for value in leaves.values()) > MOST_BYTES:
            large += 1
            continue
        document = _reverse_dict(contract, document_of(contract, leaves), made)
        if len(made) == 1:
            (one,) = made
            axis, subject, text, rank = one.axis, one.subject, one.text, one.rank
        elif made:
            axis, subject, text = "pair", "two changes", " and ".join(f"{one.subject}: {one.text}" for one in made)
            rank = 100 + sum(one.rank for one in made)
        else:
            axis, subject, text, rank = "base", "the call", "", -1
        of_values = any(one.axis == "value" for one in made)
        points.append(
            SweepPoint(axis=axis, subject=subject, text=text, rank=rank, document=document, of_values=of_values)
        )
    if large:
        notes.append(f"{large} calls with tensors of more than {MOST_BYTES >> 20} MiB together")
    points.sort(key=lambda point: point.rank)
    return SweepPlan(points=tuple(points), left_out=tuple(dict.fromkeys(notes)))


def _change_value(value: JsonValue, fields: JsonObject | None) -> JsonValue:
    match value:
        case {"tensor": dict(spec)} if fields is not None:
            merged = {**spec, **fields}
            return {"tensor": {key: item for key, item in merged.items() if item is not None}}
    return None


def _literal(text: str) -> JsonValue:
    """A plain value that was fixed at export, as JSON; None for anything else."""
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _reverse_dict(contract: ModelContract, document: JsonObject, made: Sequence[CallChange]) -> JsonObject:
    """Reverse the keys of one dict in the document."""
    chosen = {one.keys for one in made if one.keys is not None}
    if not chosen or contract.args is None or contract.kwargs is None:
        return document
    args, kwargs = document["args"], document["kwargs"]
    if isinstance(args, list):
        args = [_reversed(item) if f"args[{at}]" in chosen else item for at, item in enumerate(args)]
    if isinstance(kwargs, dict):
        kwargs = {key: _reversed(item) if f"kwargs[{key!r}]" in chosen else item for key, item in kwargs.items()}
    return {"args": args, "kwargs": kwargs}


def _reversed(value: JsonValue) -> JsonValue:
    match value:
        case {"dict": list(entries)}:
            return {"dict": entries[::-1]}
    return value


def _nbytes(value: JsonValue) -> int:
    match value:
        case {"tensor": {"dtype": str(dtype), "shape": list(shape)}}:
            return math.prod(size for size in shape if isinstance(size, int)) * ITEMSIZE.get(dtype, 8)
    return 0
