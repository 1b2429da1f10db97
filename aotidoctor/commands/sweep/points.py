"""The calls to try: the base call, changes of it at the boundary of the contract, and pairs of those last."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence

from aotidoctor.commands.sweep.changes import Change, pairs_of, single_changes
from aotidoctor.model.contract import Contract
from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.record import record
from aotidoctor.readers.inputs.generate import document_of, generated_leaves
from aotidoctor.readers.inputs.sizes import choose_symbols

MOST_BYTES = 256 << 20


@record
class Point:
    """One call: ``document`` is what the worker makes it from."""

    axis: str
    subject: str
    text: str
    rank: int
    document: JsonObject


@record
class Plan:
    """The calls in order, and what was left out of them."""

    points: tuple[Point, ...]
    left_out: tuple[str, ...]


def plan(contract: Contract, baked: Mapping[str, str], *, seed: int = 0) -> Plan:
    """All calls. ``baked`` are the values of leaves that are no tensors, as texts by path."""
    notes: list[str] = []
    symbols, _ = choose_symbols(contract)
    single = sorted(single_changes(contract, symbols), key=lambda change: change.rank)
    changes: list[tuple[Change, ...]] = [(), *((one,) for one in single), *pairs_of(single)]
    points, large = [], 0
    for made in changes:
        sizes = {name: value for one in made for name, value in (one.symbols or {}).items()}
        leaves = generated_leaves(contract, {**symbols, **sizes}, seed, notes)
        _edit(contract, leaves, made, baked)
        if sum(_nbytes(value) for value in leaves.values()) > MOST_BYTES:
            large += 1
            continue
        document = _reordered(contract, document_of(contract, leaves), made)
        points.append(_point(made, document))
    if large:
        notes.append(f"{large} calls with tensors of more than {MOST_BYTES >> 20} MiB together")
    points.sort(key=lambda point: point.rank)
    return Plan(points=tuple(points), left_out=tuple(dict.fromkeys(notes)))


def _point(made: Sequence[Change], document: JsonObject) -> Point:
    if not made:
        return Point(axis="base", subject="the call", text="", rank=-1, document=document)
    if len(made) == 1:
        one = made[0]
        return Point(axis=one.axis, subject=one.subject, text=one.text, rank=one.rank, document=document)
    text = " and ".join(f"{one.subject}: {one.text}" for one in made)
    return Point(
        axis="pair", subject="two changes", text=text, rank=100 + sum(one.rank for one in made), document=document
    )


def _edit(contract: Contract, leaves: dict[int, JsonValue], made: Sequence[Change], baked: Mapping[str, str]) -> None:
    """Put in the values that were fixed at export, and the changes."""
    for leaf in contract.leaves:
        if leaf.input_index is None and leaf.path in baked:
            leaves[leaf.index] = _literal(baked[leaf.path])
    for one in made:
        if one.leaf is not None:
            leaves[one.leaf] = _changed(leaves[one.leaf], one.fields)


def _changed(value: JsonValue, fields: JsonObject | None) -> JsonValue:
    match value:
        case {"tensor": dict(spec)} if fields is not None:
            merged = {**spec, **fields}
            return {"tensor": {key: item for key, item in merged.items() if item is not None}}
    return None


def _literal(text: str) -> JsonValue:
    """A plain value that was fixed at export, as JSON has it; None for anything else."""
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _reordered(contract: Contract, document: JsonObject, made: Sequence[Change]) -> JsonObject:
    """The document with the keys of one dict reversed."""
    wanted = {one.keys for one in made if one.keys is not None}
    if not wanted or contract.args is None or contract.kwargs is None:
        return document
    args, kwargs = document["args"], document["kwargs"]
    if isinstance(args, list):
        args = [_reversed(item) if f"args[{at}]" in wanted else item for at, item in enumerate(args)]
    if isinstance(kwargs, dict):
        kwargs = {key: _reversed(item) if f"kwargs[{key!r}]" in wanted else item for key, item in kwargs.items()}
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
