"""Rules A04 and A06: symbols that come from data, and the ranges of all symbols."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from aotidoctor.model.program import SizeRange
from aotidoctor.program.found import Found
from aotidoctor.program.values import Value

UNBACKED = re.compile(r"\b(?:zuf|u)\d+\b")
_FROM_DATA = ("aten.item.default", "aten._local_scalar_dense.default")
# A bound in name only, as the size of nonzero has it.
_UNBOUNDED = 2**62
# Symbol -> dims of inputs that it is the size of, each with the sample's size there.
Places = Mapping[str, Sequence[tuple[str, int | None]]]


def check_symbols(ranges: Mapping[str, SizeRange], places: Places, values: Sequence[Value], found: Found) -> None:
    """What the ranges say, and what they leave open."""
    for symbol, bounds in ranges.items():
        low, high = _bound(bounds.low), _bound(bounds.high)
        is_empty = low is not None and high is not None and low > high
        if is_empty:
            add_empty(symbol, low, high, found)
            low, high = high, low
        if not UNBACKED.fullmatch(symbol):
            _check_range(symbol, low, high, places.get(symbol, ()), found)
        elif low is None or high is None:
            _add_unbacked(symbol, low, high, values, found)


def _bound(value: int | None) -> int | None:
    return value if value is not None and abs(value) < _UNBOUNDED else None


def add_empty(symbol: str, low: int | None, high: int | None, found: Found) -> None:
    """A range that holds nothing."""
    observed = f"{symbol} in {low}..{high}: no size lies there"
    found.add("A06", "empty", target=symbol, observed=observed, expected="a lower bound that is not above the upper")


def add_outside(symbol: str, size: int, low: int | None, high: int | None, found: Found) -> None:
    """A sample that the range leaves out."""
    observed = f"the sample input has {symbol} = {size}, its range is {_text(low, high)}"
    expected = "a sample inside the range"
    found.add(
        "A06",
        "example-outside",
        target=symbol,
        observed=observed,
        expected=expected,
        symbol=symbol,
        lower=low,
        upper=high,
    )


def _text(low: int | None, high: int | None) -> str:
    return f"{'-inf' if low is None else low}..{'inf' if high is None else high}"


def _check_range(
    symbol: str, low: int | None, high: int | None, places: Sequence[tuple[str, int | None]], found: Found
) -> None:
    subject, text = places[0][0] if places else symbol, _text(low, high)
    add = partial(found.add, "A06", symbol=symbol, lower=low, upper=high)
    if low is not None and low == high:
        observed = f"{symbol} in {text}: only one size"
        add("one-value", target=subject, observed=observed, expected="a range, or a static dim")
        return
    sizes = [size for _, size in places if size is not None]
    outside = [size for size in sizes if (low is not None and size < low) or (high is not None and size > high)]
    if outside:
        add_outside(symbol, outside[0], low, high, found)
    if places:
        observed = f"{', '.join(place for place, _ in places)} in {text}"
        add("range", target=subject, observed=observed, expected="the sizes that will be served")


def _add_unbacked(symbol: str, low: int | None, high: int | None, values: Sequence[Value], found: Found) -> None:
    holders = [value for value in values if value.target is not None and symbol in value.symbols]
    first = holders[0] if holders else None
    size_of = next((value.node.name for value in holders if value.rank), None)
    is_data = first is not None and first.target in _FROM_DATA
    open_ends = " and no ".join(end for end, bound in (("lower", low), ("upper", high)) if bound is None)
    found.add(
        "A04",
        "no-bound" if is_data and size_of is not None else "open-size",
        node=None if first is None else first.node,
        target=symbol,
        graph="" if first is None else first.graph,
        observed=f"{symbol} has no {open_ends} bound"
        + (f", and is a size of {size_of}" if size_of is not None else ""),
        expected=f"torch._check({symbol} <= ...) in forward, for the values that the data can have",
        symbol=symbol,
        size_of=size_of,
    )
