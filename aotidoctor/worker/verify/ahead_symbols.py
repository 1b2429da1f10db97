"""Rules A04 and A06: symbols that come from data, and the ranges of all symbols."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotidoctor.worker.verify.graph import graphs
from aotidoctor.worker.verify.paths import leaf_examples, user_inputs
from aotidoctor.worker.verify.records import Records

# nonzero of a dynamic tensor has a bound in name only.
UNBOUNDED = 2**62


def check_symbols(program: Any, records: Records) -> None:
    """What the ranges say, and what they leave open."""
    places = _places(program)
    for symbol, found in program.range_constraints.items():
        name = str(symbol)
        if _is_unbacked(name):
            _check_unbacked(program, name, found, records)
        else:
            _check_range(name, found, places.get(name, []), records)


def _is_unbacked(name: str) -> bool:
    return name.startswith("zuf") or (name[:1] == "u" and name[1:].isdigit())


def _places(program: Any) -> dict[str, list[tuple[str, int | None]]]:
    """Symbol -> dims of inputs that it is the size of, each with the sample's size there."""
    examples = leaf_examples(program)
    inputs = user_inputs(program)
    found: dict[str, list[tuple[str, int | None]]] = {}
    for at, item in enumerate(inputs):
        example = examples[at] if len(examples) == len(inputs) else None
        for dim, size in enumerate(getattr(item.val, "shape", ())):
            symbol = _symbol(size)
            if symbol is not None:
                sizes = getattr(example, "shape", ())
                found.setdefault(symbol, []).append(
                    (f"{item.path}.shape[{dim}]", sizes[dim] if dim < len(sizes) else None)
                )
    return found


def _symbol(size: Any) -> str | None:
    expression = getattr(getattr(size, "node", None), "expr", None)
    return str(expression) if expression is not None and getattr(expression, "is_symbol", False) else None


def _check_range(name: str, found: Any, places: list[tuple[str, int | None]], records: Records) -> None:
    low, high = _bound(found.lower), _bound(found.upper)
    text = f"{low if low is not None else '-inf'}..{high if high is not None else 'inf'}"
    subject = places[0][0] if places else name
    facts: dict[str, Any] = {"symbol": name, "lower": low, "upper": high}
    if low is not None and low == high:
        observed = f"{name} in {text}: one size only"
        records.add("A06", "one-value", target=subject, observed=observed, expected="a range, or a static dim", **facts)
        return
    for place, size in places:
        if size is not None and ((low is not None and size < low) or (high is not None and size > high)):
            observed = f"the sample input has {place} = {size}, {name} lies in {text}"
            records.add(
                "A06", "example-outside", target=place, observed=observed, expected=f"a size in {text}", **facts
            )
    if places:
        observed = f"{', '.join(place for place, _ in places)} in {text}"
        records.add(
            "A06", "range", target=subject, observed=observed, expected="the sizes that will be served", **facts
        )


def _bound(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None
    return number if abs(number) < UNBOUNDED else None


def _check_unbacked(program: Any, name: str, found: Any, records: Records) -> None:
    low, high = _bound(found.lower), _bound(found.upper)
    if high is not None and low is not None:
        return
    path, node = _origin(program, name)
    size = _first_size(program, name)
    is_data = node is not None and str(node.target) in ("aten.item.default", "aten._local_scalar_dense.default")
    open_ends = " and no ".join(end for end, bound in (("lower", low), ("upper", high)) if bound is None)
    observed = f"{name} has no {open_ends} bound" + (f", and is a size of {size.name}" if size is not None else "")
    records.add(
        "A04",
        "no-bound" if is_data and size is not None else "open-size",
        node=node,
        target=name,
        graph=path,
        observed=observed,
        expected=f"torch._check({name} <= ...) in forward, for what the data can hold",
        symbol=name,
        size_of=None if size is None else size.name,
    )


def _origin(program: Any, name: str) -> tuple[str, Any]:
    """The first node whose val holds the symbol."""
    return next(((path, node) for path, node, _ in _holding(program, name)), ("", None))


def _first_size(program: Any, name: str) -> Any:
    return next((node for _, node, is_size in _holding(program, name) if is_size), None)


def _holding(program: Any, name: str) -> Iterator[tuple[str, Any, bool]]:
    import torch
    from torch.utils import _pytree as pytree

    for path, module in graphs(program):
        for node in module.graph.nodes:
            for leaf in pytree.tree_leaves(node.meta.get("val")) if node.op == "call_function" else ():
                sizes = tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else ()
                parts = sizes or (leaf,)
                if any(name in map(str, _free(part)) for part in parts):
                    yield path, node, bool(sizes)


def _free(value: Any) -> Any:
    return getattr(getattr(getattr(value, "node", None), "expr", None), "free_symbols", ())
