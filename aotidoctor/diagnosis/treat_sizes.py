"""Treatments of sizes: cut dims down into range, to a common size, to a multiple.

A size is changed for its symbol, hence in every input that shows the symbol: cutting one tensor of a batch would only
move the disagreement. Tensors are cut, never padded: what to pad with is the caller's knowledge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aotidoctor.diagnosis.treat_plan import Plan, couples, found, path_of
from aotidoctor.model.case import Case
from aotidoctor.model.contract import Dim
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.expr import evaluate, solve
from aotidoctor.model.json_types import JsonObject

Place = tuple[str, int]
BLAME = "AD-RUN-022"


def into_range(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Cut each dim above its maximum down to it; else fill each below its minimum up to that."""
    items = found(findings, "AD-IN-017", "high")
    return _shorten(case, _asked(items, "high")) if items else _lengthen(case, found(findings, "AD-IN-017", "low"))


def into_grid(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Cut each dim that makes a launch grid too large down to what the GPU takes."""
    items = [item for item in found(findings, "AD-HOST-014", "grid-large") if item.facts.get("high")]
    wanted: dict[Place, int] = {}
    for item in items:
        place, high = _place(item), _int(item, "high")
        if place is not None and high is not None:
            wanted[place] = min(high, wanted.get(place, high))
    return _shorten(case, wanted)


def into_table(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Cut each dim that positions run along to as many as their table has."""
    items = [item for item in findings if item.code == BLAME and _int(item, "most") and item.facts.get("sizes")]
    wanted: dict[Place, int] = {}
    for item in items:
        sizes, most = item.facts.get("sizes"), _int(item, "most")
        for place in sizes if isinstance(sizes, tuple) else ():
            path, _, dim = str(place).rstrip("]").rpartition(".shape[")
            if dim.isdigit() and most is not None:
                wanted[path, int(dim)] = most
    return _shorten(case, wanted)


def agree(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Cut all dims that share a symbol to the smallest size that one of them has."""
    return _shorten(case, _asked(found(findings, "AD-IN-016", "symbol"), "size"))


def divisible(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Drop the remainder of each dim that must be a multiple."""
    return _shorten(case, _asked(found(findings, "AD-IN-015", "remainder"), "expected_size"))


def _asked(items: Sequence[Evidence], name: str) -> dict[Place, int] | None:
    """The size that each finding has under ``name``, by its place; None where one does not tell both."""
    told = {place: size for item in items if (place := _place(item)) and (size := _int(item, name)) is not None}
    return told if len(told) == len(items) else None


def _shorten(case: Case, wanted: Mapping[Place, int] | None) -> Plan | None:
    """Cut ``wanted`` dims to these sizes, and with them every dim of the same symbols."""
    if not wanted:
        return None
    sizes = {**wanted, **_follow(case, wanted)}
    cuts = [
        (path, at, sizes[path, at], size)
        for path, at, size, _ in _dims(case)
        if (path, at) in sizes and sizes[path, at] < size
    ]
    lines = [f"{path} = {path}.narrow({at}, 0, {new}).contiguous()" for path, at, new, _ in cuts]
    return _resized("cut", cuts, "\n".join(lines))


def _lengthen(case: Case, items: Sequence[Evidence]) -> Plan | None:
    """Every dim of the symbols in question at the least size, its last entry repeated. It shows what is wrong only."""
    low = _asked(items, "low") or {}
    symbols = {str(dim.expr): low[path, at] for path, at, _, dim in _dims(case) if (path, at) in low and dim.expr}
    grown = [
        (path, at, symbols[str(dim.expr)], size)
        for path, at, size, dim in _dims(case)
        if 0 < size < symbols.get(str(dim.expr), 0)
    ]
    return _resized("fill", grown)


def _resized(verb: str, changes: Sequence[tuple[str, int, int, int]], command: str = "") -> Plan | None:
    """The plan of ``(path, dim, size, size before)``; None without any."""
    if not changes:
        return None
    steps: tuple[JsonObject, ...] = tuple(
        {"op": "clamp_dim", "path": path, "dim": at, "size": new} for path, at, new, _ in changes
    )
    text = ", ".join(f"{path}.shape[{at}] from {old} to {new}" for path, at, new, old in changes)
    return Plan(text=f"{verb} {text}", steps=steps, command=command)


def _follow(case: Case, wanted: Mapping[Place, int]) -> dict[Place, int]:
    """The sizes that all dims then must have, from the smallest value that each symbol takes anywhere."""
    values: dict[str, int] = {}
    dims = list(_dims(case))
    for path, at, size, dim in dims:
        solved = solve(dim.expr, min(size, wanted.get((path, at), size))) if dim.expr is not None else None
        if solved is not None:
            symbol, value = solved
            values[symbol] = min(value, values.get(symbol, value))
    touched = {symbol for path, at, _, dim in dims if (path, at) in wanted and dim.expr for symbol in dim.expr.symbols}
    return {
        (path, at): new
        for path, at, _, dim in dims
        if dim.expr is not None and dim.expr.symbols & touched and (new := evaluate(dim.expr, values)) is not None
    }


def _dims(case: Case) -> Iterator[tuple[str, int, int, Dim]]:
    """``(path, dim, size given, compiled dim)`` of every dynamic dim."""
    for path, spec, tensor in couples(case):
        for at, (dim, size) in enumerate(zip(spec.dims or (), tensor.shape, strict=False)):
            if dim.static is None:
                yield path, at, size, dim


def _place(item: Evidence) -> Place | None:
    path, dim = path_of(item), _int(item, "dim")
    return None if path is None or dim is None else (path, dim)


def _int(item: Evidence, name: str) -> int | None:
    value = item.facts.get(name)
    return value if isinstance(value, int) else None
