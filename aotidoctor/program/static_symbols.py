"""Rules A04 and A06 from the symbols in sizes and numbers, and the ranges of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aotidoctor.model.json_types import JsonValue, as_integer, as_list, as_object
from aotidoctor.model.program import SizeRange
from aotidoctor.model.program_archive import ProgramArchive
from aotidoctor.program.document import Graph, Node, names_of
from aotidoctor.program.found import Found

_UNBACKED = re.compile(r"\b(?:zuf|u)\d+\b")
_SYMBOL = re.compile(r"^[A-Za-z]+\d+$")
_FROM_DATA = ("aten.item.default", "aten._local_scalar_dense.default")
# A bound in name only, as the size of nonzero has it.
_UNBOUNDED = 2**62


def check_symbols(archive: ProgramArchive, everything: Sequence[Graph], found: Found) -> None:
    """What the ranges say, and what they leave open."""
    for symbol, bounds in archive.facts.ranges.items():
        if _UNBACKED.fullmatch(symbol):
            _check_unbacked(everything, symbol, bounds, found)
        else:
            _check_range(archive, everything[0], symbol, bounds, found)
    _check_rangeless(everything, archive, found)


def _check_range(archive: ProgramArchive, top: Graph, symbol: str, bounds: SizeRange, found: Found) -> None:
    low, high = _bound(bounds.low), _bound(bounds.high)
    if low is not None and high is not None and low > high:
        _add_empty(found, symbol, low, high)
        low, high = high, low
    places = [
        (f"{leaf.path}.shape[{dim}]", _example(top, leaf.name, dim))
        for leaf in archive.facts.leaves
        if leaf.tensor is not None
        for dim, size in enumerate(leaf.tensor.shape or ())
        if size == symbol and _SYMBOL.match(symbol)
    ]
    text = f"{low if low is not None else '-inf'}..{high if high is not None else 'inf'}"
    subject = places[0][0] if places else symbol

    def add(kind: str, target: str, observed: str, expected: str) -> None:
        found.add(
            "A06", kind, target=target, observed=observed, expected=expected, symbol=symbol, lower=low, upper=high
        )

    sizes = [size for _, size in places if size is not None]
    outside = [size for size in sizes if (low is not None and size < low) or (high is not None and size > high)]
    if low is not None and low == high:
        add("one-value", subject, f"{symbol} in {text}: one size only", "a range, or a static dim")
        return
    if outside:
        observed = f"the sample input has {symbol} = {outside[0]}, its range is {text}"
        add("example-outside", symbol, observed, "a sample inside of the range")
    if places:
        add("range", subject, f"{', '.join(place for place, _ in places)} in {text}", "the sizes that will be served")


def _add_empty(found: Found, symbol: str, low: int, high: int) -> None:
    observed = f"{symbol} in {low}..{high}: no size lies there"
    found.add("A06", "empty", target=symbol, observed=observed, expected="a lower bound that is not above the upper")


def _example(top: Graph, name: str, dim: int) -> int | None:
    """The sample's size, as the hint in the metadata tells it."""
    sizes = as_list(as_object(top.tensors.get(name)).get("sizes"))
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
