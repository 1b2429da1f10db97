"""Check values, symbols and operators of an exported program: rules A01, A03, A04, A06, A07, A10, G01, G03, G04.

Both the reader of the archive and the child that rebuilds the program collect violations here.
The rules cover tensors on several devices, dtypes that the generated code has no name for, symbols that come from
data, the ranges of all symbols, values without metadata, and the operators that nodes call.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from aotidoctor.model.artifact import SizeRange
from aotidoctor.model.evidence import FactValue, Violation, Where
from aotidoctor.model.record import record
from aotidoctor.model.report import merged_facts

# Collected violations. A program with ten thousand bad nodes has one fault; the others are only counted.
MAX_EACH = 50
MAX_TEXT = 2000


@record
class NodeLocation:
    """A node of a graph, with the line of the user's source that it comes from."""

    name: str
    where: Where | None = None


@dataclass(slots=True)
class ViolationCollector:
    """Violations so far; ``counts`` includes those beyond ``MAX_EACH`` of a code."""

    items: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        code: str,
        kind: str,
        *,
        observed: str,
        expected: str,
        node: NodeLocation | str | None = None,
        target: str | None = None,
        graph: str = "",
        **facts: FactValue,
    ) -> None:
        """Add one violation of ``code`` (``G03``). ``target`` is what the node calls or refers to."""
        self.counts[code] += 1
        if self.counts[code] > MAX_EACH:
            return
        self.items.append(
            Violation(
                code=f"VERIFY-{code}",
                kind=kind,
                observed=observed[:MAX_TEXT],
                expected=expected[:MAX_TEXT],
                node=(node.name if isinstance(node, NodeLocation) else node) or None,
                target=target,
                graph=graph,
                where=node.where if isinstance(node, NodeLocation) else None,
                facts=facts,
            )
        )

    def cut(self) -> dict[str, int]:
        """Number of violations left out, by code."""
        return {code: count - MAX_EACH for code, count in self.counts.items() if count > MAX_EACH}

    def broken(self) -> bool:
        """Whether a rule of PyTorch's verifier is broken."""
        return any(code.startswith(("G", "S")) for code in self.counts)


# Rules A01 and A10: devices and dtypes.
@record
class Value:
    """A tensor or a number that a node returns. ``target`` is what the node calls, None for an input of the graph.

    ``name`` is the value's own, ``rank`` None for a number; ``symbols`` are those in its sizes, or in the number.
    """

    graph: str
    node: NodeLocation
    name: str
    target: str | None
    rank: int | None = None
    dtype: str = ""
    device: str = ""
    symbols: frozenset[str] = frozenset()


def check_devices(values: Sequence[Value], found: ViolationCollector) -> None:
    """Check that all values are on one device, except single numbers on the CPU."""
    devices: dict[str, list[Value]] = {}
    for value in values:
        if value.device and (value.device != "cpu" or value.rank):
            devices.setdefault(value.device, []).append(value)
    if len(devices) < 2:
        return
    rare = min(devices, key=lambda name: len(devices[name]))
    first = devices[rare][0]
    counts = ", ".join(f"{len(items)} tensors on {name}" for name, items in devices.items())
    found.add(
        "A01",
        "mixed-device",
        node=first.node,
        graph=first.graph,
        observed=f"{counts}; {first.name} is on {rare}",
        expected="one device",
        devices=tuple(devices),
    )


def check_dtypes(
    values: Sequence[Value], users: Container[str], nameless: Container[str], found: ViolationCollector
) -> None:
    """Report each dtype of ``nameless`` once; ``users`` are the names of the inputs that the caller gives."""
    seen: set[str] = set()
    for value in values:
        if value.dtype not in nameless or value.dtype in seen:
            continue
        seen.add(value.dtype)
        found.add(
            "A10",
            "unsupported-input" if not value.graph and value.name in users else "unsupported",
            node=value.node,
            target=value.target,
            graph=value.graph,
            observed=f"{value.name} is torch.{value.dtype} on {value.device}",
            expected="a dtype that the generated C++ code can name",
            dtype=value.dtype,
        )


# Rules A04 and A06: symbols and ranges.
UNBACKED = re.compile(r"\b(?:zuf|u)\d+\b")
_FROM_DATA = ("aten.item.default", "aten._local_scalar_dense.default")
# A bound that does not limit anything, as that of the size of nonzero.
_UNBOUNDED = 2**62
# Symbol -> dims of inputs that it is the size of, each with the sample's size there.
Places = Mapping[str, Sequence[tuple[str, int | None]]]


def check_symbols(
    ranges: Mapping[str, SizeRange], places: Places, values: Sequence[Value], found: ViolationCollector
) -> None:
    """Check the ranges of all symbols, and symbols without bounds."""
    for symbol, bounds in ranges.items():
        low, high = _bound(bounds.low), _bound(bounds.high)
        is_empty = low is not None and high is not None and low > high
        if is_empty:
            add_empty(symbol, low, high, found)
            low, high = high, low
        if not UNBACKED.fullmatch(symbol):
            _check_range(symbol, low, high, places.get(symbol, ()), found)
        elif low is None or high is None:
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


def _bound(value: int | None) -> int | None:
    return value if value is not None and abs(value) < _UNBOUNDED else None


def add_empty(symbol: str, low: int | None, high: int | None, found: ViolationCollector) -> None:
    """Report a range without any size in it."""
    observed = f"{symbol} in {low}..{high}: no size lies there"
    found.add("A06", "empty", target=symbol, observed=observed, expected="a lower bound that is not above the upper")


def add_outside(symbol: str, size: int, low: int | None, high: int | None, found: ViolationCollector) -> None:
    """Report a sample outside the range."""
    observed = f"the sample input has {symbol} = {size}, its range is {_text(low, high)}"
    add = partial(found.add, target=symbol, symbol=symbol, lower=low, upper=high)
    add("A06", "example-outside", observed=observed, expected="a sample inside the range")


def _text(low: int | None, high: int | None) -> str:
    return f"{'-inf' if low is None else low}..{'inf' if high is None else high}"


def _check_range(
    symbol: str, low: int | None, high: int | None, places: Sequence[tuple[str, int | None]], found: ViolationCollector
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


# Rules G01, G03, G04, A03 and A07: metadata and operators.
_DROPOUT = (
    "dropout", "dropout_", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout", "rrelu",
    "rrelu_with_noise",
)  # fmt: skip
_BATCH_NORM = (
    "batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
)  # fmt: skip
_TRAINING = {**dict.fromkeys(_DROPOUT, "dropout"), **dict.fromkeys(_BATCH_NORM, "batch-norm")}
# There is no other way to call these.
_ALWAYS = ("_batch_norm_with_update", "_batch_norm_with_update_functional")
_EXPECTED = {
    "dropout": "model.eval() before export: dropout off",
    "batch-norm": "model.eval() before export: running statistics",
}
SWITCHES = ("train", "training")
"""Names of the argument that switches an operator to training mode."""


@record
class NodeCall:
    """A node and its target (``aten.add.Tensor``); an input of a graph may have none."""

    graph: str
    node: NodeLocation | str
    target: str | None


def add_val_missing(call: NodeCall, observed: str, found: ViolationCollector) -> None:
    """Report a value without metadata."""
    expected = "a val: the result of the node as a fake tensor, a number or a symbol"
    _add(call, found)("G01", "val-missing", observed=observed, expected=expected)


def add_operator_kind(call: NodeCall, kind: str, found: ViolationCollector, **facts: str) -> None:
    """Report a target of a ``kind`` that the dialect does not have."""
    expected = (
        "an operator (torch.ops...), a higher-order operator, or one of the Python and torch functions of the dialect"
    )
    observed = f"{call.target or 'nothing'} ({kind})"
    _add(call, found)("G03", "operator-kind", observed=observed, expected=expected, **facts)


def add_not_functional(call: NodeCall, dialect: str, found: ViolationCollector) -> None:
    """Report an operator that writes, which the dialect forbids."""
    observed = f"{call.target} writes to its arguments"
    expected = f"an operator that changes no argument, as dialect {dialect or 'ATEN'} requires"
    _add(call, found)("G04", "not-functional", observed=observed, expected=expected, dialect=dialect)


def check_training(call: NodeCall, *, trains: bool, found: ViolationCollector) -> None:
    """Check one of PyTorch's operators for training mode; ``trains``: one of ``SWITCHES`` is on."""
    namespace, _, rest = (call.target or "").partition(".")
    name, _, overload = rest.partition(".")
    trains = trains and not overload.startswith("no_stats")
    kind = "batch-norm" if name in _ALWAYS else _TRAINING.get(name) if trains else None
    if namespace == "aten" and kind is not None:
        _add(call, found)("A07", kind, observed=f"{call.target} in training mode", expected=_EXPECTED[kind])


def add_custom(call: NodeCall, found: ViolationCollector) -> None:
    """Report an operator that is not PyTorch's own; ``target`` is its qualified name."""
    expected = "that it is registered wherever the package is loaded"
    _add(call, found)("A03", "custom-op", observed=f"{call.target} is called by name", expected=expected)


def add_merged(path: str, other: str, found: ViolationCollector) -> None:
    """Report an input that export took for another one."""
    observed, expected = f"never read: {other} stands in its place", "an input that the program reads"
    found.add("A13", "merged", target=path, observed=observed, expected=expected, **merged_facts(path, other))


def _add(call: NodeCall, found: ViolationCollector) -> partial[None]:
    return partial(found.add, node=call.node, target=call.target, graph=call.graph)
