"""Rules A01, A04, A06 and A10 from the metadata of values: devices, dtypes, symbols and their ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aotidoctor.exported.document import Graph, Node, argument_name, as_integer, as_list, as_object, as_text, names_of
from aotidoctor.exported.static_found import Found
from aotidoctor.model.program import ProgramLeaf, SizeRange
from aotidoctor.model.program_archive import ProgramArchive
from aotidoctor.model.run import JsonObject, JsonValue

# ScalarType -> dtypes that the generated C++ code has no name for.
_NO_CODE = {33: "float8_e8m0fnu"}
_UNBACKED = re.compile(r"\b(?:zuf|u)\d+\b")
_SYMBOL = re.compile(r"^[A-Za-z]+\d+$")
_FROM_DATA = ("aten.item.default", "aten._local_scalar_dense.default")
# torch writes no bound at all as one of these in some versions.
_UNBOUNDED = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    graph: str
    name: str
    node: Node | None
    meta: JsonObject


def check_tensors(archive: ProgramArchive, everything: Sequence[Graph], found: Found) -> None:
    """All tensors of all graphs, then the symbols."""
    values = [value for graph in everything for value in _values(graph)]
    _check_devices(values, found)
    _check_dtypes(archive, values, found)
    for symbol, bounds in archive.facts.ranges.items():
        if _UNBACKED.fullmatch(symbol):
            _check_unbacked(everything, symbol, bounds, found)
        else:
            _check_range(archive.facts.leaves, values, symbol, bounds, found)
    _check_rangeless(everything, archive, found)


def _values(graph: Graph) -> Iterator[_Value]:
    for item in graph.inputs:
        name = argument_name(item)
        if name in graph.tensors:
            yield _Value(graph=graph.path, name=name, node=None, meta=as_object(graph.tensors[name]))
    for node in graph.nodes:
        for output in node.outputs:
            for name in names_of(output):
                if name in graph.tensors:
                    yield _Value(graph=graph.path, name=name, node=node, meta=as_object(graph.tensors[name]))


def _check_devices(values: Sequence[_Value], found: Found) -> None:
    """Single numbers on the CPU go with any device."""
    devices: dict[str, list[_Value]] = {}
    for value in values:
        device = as_object(value.meta.get("device"))
        kind, index = as_text(device.get("type")), as_integer(device.get("index"))
        if kind and not (kind == "cpu" and not as_list(value.meta.get("sizes"))):
            devices.setdefault(kind if index is None else f"{kind}:{index}", []).append(value)
    if len(devices) < 2:
        return
    rare = min(devices, key=lambda name: len(devices[name]))
    first = devices[rare][0]
    counts = ", ".join(f"{len(items)} tensors on {name}" for name, items in devices.items())
    found.add(
        "A01",
        "mixed-device",
        node=first.node or first.name,
        graph=first.graph,
        observed=f"{counts}; {first.name} is on {rare}",
        expected="one device",
        devices=tuple(devices),
    )


def _check_dtypes(archive: ProgramArchive, values: Sequence[_Value], found: Found) -> None:
    users = {leaf.name for leaf in archive.facts.leaves}
    seen: set[str] = set()
    for value in values:
        dtype = _NO_CODE.get(as_integer(value.meta.get("dtype")) or 0)
        if dtype is None or dtype in seen:
            continue
        seen.add(dtype)
        found.add(
            "A10",
            "unsupported-input" if not value.graph and value.name in users else "unsupported",
            node=value.node or value.name,
            target=value.node.target if value.node is not None else None,
            graph=value.graph,
            observed=f"{value.name} is torch.{dtype} on {as_text(as_object(value.meta.get('device')).get('type'))}",
            expected="a dtype that the generated C++ code can name",
            dtype=dtype,
        )


def _check_range(
    leaves: Sequence[ProgramLeaf], values: Sequence[_Value], symbol: str, bounds: SizeRange, found: Found
) -> None:
    places = [
        (f"{leaf.path}.shape[{dim}]", leaf.name, dim)
        for leaf in leaves
        if leaf.tensor is not None
        for dim, size in enumerate(leaf.tensor.shape or ())
        if size == symbol and _SYMBOL.match(symbol)
    ]
    low, high = _bound(bounds.low), _bound(bounds.high)
    text = f"{low if low is not None else '-inf'}..{high if high is not None else 'inf'}"
    subject = places[0][0] if places else symbol

    def add(kind: str, target: str, observed: str, expected: str) -> None:
        found.add(
            "A06", kind, target=target, observed=observed, expected=expected, symbol=symbol, lower=low, upper=high
        )

    if low is not None and high is not None and low > high:
        _add_empty(found, symbol, low, high)
        return
    if low is not None and low == high:
        add("one-value", subject, f"{symbol} in {text}: one size only", "a range, or a static dim")
        return
    for place, name, dim in places:
        size = _example(values, name, dim)
        if size is not None and ((low is not None and size < low) or (high is not None and size > high)):
            observed = f"the sample input has {place} = {size}, {symbol} lies in {text}"
            add("example-outside", place, observed, f"a size in {text}")
    if places:
        add(
            "range", subject, f"{', '.join(place for place, _, _ in places)} in {text}", "the sizes that will be served"
        )


def _add_empty(found: Found, symbol: str, low: int, high: int) -> None:
    observed = f"{symbol} in {low}..{high}: no size lies there"
    found.add("A06", "empty", target=symbol, observed=observed, expected="a lower bound that is not above the upper")


def _example(values: Sequence[_Value], name: str, dim: int) -> int | None:
    """The sample's size, as the hint in the metadata tells it."""
    value = next((value for value in values if not value.graph and value.name == name), None)
    sizes = as_list(value.meta.get("sizes")) if value is not None else []
    expression = as_object(as_object(sizes[dim]).get("as_expr")) if dim < len(sizes) else {}
    return as_integer(as_object(expression.get("hint")).get("as_int"))


def _bound(value: int | None) -> int | None:
    return value if value is not None and abs(value) < _UNBOUNDED else None


def _check_unbacked(everything: Sequence[Graph], symbol: str, bounds: SizeRange, found: Found) -> None:
    low, high = _bound(bounds.low), _bound(bounds.high)
    if low is not None and high is not None and low > high:
        observed = f"{symbol} in {low}..{high}: no size lies there"
        found.add(
            "A06", "empty", target=symbol, observed=observed, expected="a lower bound that is not above the upper"
        )
        return
    if low is not None and high is not None:
        return
    holders = list(_holding(everything, symbol))
    path, node, _ = holders[0] if holders else ("", None, False)
    size = next((holder for _, holder, is_size in holders if is_size), None)
    is_data = node is not None and node.target in _FROM_DATA
    open_ends = " and no ".join(end for end, bound in (("lower", low), ("upper", high)) if bound is None)
    found.add(
        "A04",
        "no-bound" if is_data and size is not None else "open-size",
        node=node,
        target=symbol,
        graph=path,
        observed=f"{symbol} has no {open_ends} bound" + (f", and is a size of {size.name}" if size is not None else ""),
        expected=f"torch._check({symbol} <= ...) in forward, for what the data can hold",
        symbol=symbol,
        size_of=None if size is None else size.name,
    )


def _check_rangeless(everything: Sequence[Graph], archive: ProgramArchive, found: Found) -> None:
    """Symbols that come from data and have no entry at all."""
    told: set[str] = set(archive.facts.ranges)
    for graph in everything:
        for metas in (graph.tensors, graph.numbers):
            for text in _expressions(metas, 0):
                for symbol in _UNBACKED.findall(text):
                    if symbol not in told:
                        told.add(symbol)
                        _check_unbacked(everything, symbol, SizeRange(), found)


def _holding(everything: Sequence[Graph], symbol: str) -> Iterator[tuple[str, Node, bool]]:
    """Nodes whose value holds the symbol, and whether as the size of a tensor."""
    for graph in everything:
        for node in graph.nodes:
            for name in (name for item in node.outputs for name in names_of(item)):
                sizes = as_object(graph.tensors.get(name)).get("sizes")
                for meta, is_size in ((sizes, True), (graph.numbers.get(name), False)):
                    if any(symbol in _UNBACKED.findall(text) for text in _expressions(meta, 0)):
                        yield graph.path, node, is_size


def _expressions(value: JsonValue, depth: int) -> Iterator[str]:
    if depth > 8:
        return
    if isinstance(value, list):
        for item in value:
            yield from _expressions(item, depth + 1)
    elif isinstance(value, dict):
        text = value.get("expr_str")
        if isinstance(text, str):
            yield text[:4000]
        for item in value.values():
            if isinstance(item, list | dict):
                yield from _expressions(item, depth + 1)
