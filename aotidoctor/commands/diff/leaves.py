"""The leaves of two contracts, and of two calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from aotidoctor.commands.diff.node import Node
from aotidoctor.commands.diff.tally import NONE, Tally

_INTEGERS = ("int", "uint", "bool")
_DETAILS = ("requires_grad", "quantized")


def compare_leaves(tally: Tally, a: Node, b: Node) -> None:
    """What two contracts expect, leaf by leaf."""
    one, two = _by_path(a), _by_path(b)
    _missing(tally, "leaf", one, two)
    for path in one:
        if path in two:
            _leaf(tally, path, one[path], two[path])


def _by_path(node: Node) -> dict[str, Node]:
    return {leaf.text("path") or "?": leaf for leaf in node.nodes("leaves")}


def _missing(tally: Tally, rule: str, one: Mapping[str, Node], two: Mapping[str, Node]) -> None:
    for path in dict.fromkeys((*one, *two)):
        if path not in one or path not in two:
            kind = f"{rule}-keyword" if path.startswith("kwargs") else rule
            tally.differ(kind, path, *("there" if path in side else "missing" for side in (one, two)))


def _leaf(tally: Tally, path: str, a: Node, b: Node) -> None:
    tally.compare("leaf-kind", f"{path}: kind", a.text("kind"), b.text("kind"))
    tally.compare("leaf-dtype", f"{path}: dtype", a.text("dtype"), b.text("dtype"))
    tally.compare("leaf-device", f"{path}: device", a.text("device_type"), b.text("device_type"))
    tally.compare("leaf-rank", f"{path}: rank", a.number("rank"), b.number("rank"))
    one, two = a.nodes("dims"), b.nodes("dims")
    if len(one) == len(two):
        for index, (first, second) in enumerate(zip(one, two, strict=True)):
            _dim(tally, f"{path}: dim {index}", first, second)
    strides = [side.numbers("strides") for side in (a, b)]
    # A stride that follows from a size that differs has been told.
    same_sizes = [_size(dim) for dim in one] == [_size(dim) for dim in two]
    if same_sizes:
        tally.compare("leaf-stride", f"{path}: strides", *strides)
    else:
        tally.skip("strides that follow from sizes", *strides)


def _dim(tally: Tally, subject: str, a: Node, b: Node) -> None:
    if a.number("static") is not None or b.number("static") is not None:
        tally.compare("leaf-shape", subject, _size(a), _size(b))
        return
    tally.compare("leaf-range", f"{subject}: range", _size(a), _size(b))
    tally.compare("leaf-symbol", f"{subject}: symbol", a.text("expr"), b.text("expr"))


def _size(dim: Node) -> str:
    static = dim.number("static")
    if static is not None:
        return str(static)
    low, high = dim.number("min"), dim.number("max")
    return f"{'' if low is None else low}..{'' if high is None else high}"


def compare_calls(tally: Tally, a: Node, b: Node) -> None:
    """What two callers pass, by metadata."""
    problems = [side.text("problem") or "readable" for side in (a, b)]
    tally.compare("given-problem", "inputs file", *problems)
    if any(side.text("problem") for side in (a, b)):
        return
    one, two = _by_path(a), _by_path(b)
    _missing(tally, "given", one, two)
    for path in one:
        if path in two:
            _given(tally, path, one[path], two[path])
    tally.compare("given-alias", "tensors that share memory", _shared(one), _shared(two))
    for name in ("path", "sha256"):
        tally.skip("names and hashes of inputs files", a.text(name), b.text(name))


def _given(tally: Tally, path: str, a: Node, b: Node) -> None:
    kinds = [side.text("kind") for side in (a, b)]
    tally.compare("given-kind", f"{path}: kind", *kinds)
    if kinds[0] != kinds[1]:
        return
    if kinds[0] != "tensor":
        tally.compare("given-kind", f"{path}: type", a.text("type"), b.text("type"))
        tally.compare("given-constant", f"{path}: value", a.text("text"), b.text("text"))
        return
    tally.compare("given-dtype", f"{path}: dtype", a.text("dtype"), b.text("dtype"))
    tally.compare("given-device", f"{path}: device", a.text("device"), b.text("device"))
    tally.compare("given-layout", f"{path}: layout", a.text("layout"), b.text("layout"))
    shapes = [side.numbers("shape") for side in (a, b)]
    if len(shapes[0]) != len(shapes[1]):
        tally.compare("given-rank", f"{path}: shape", *shapes)
    else:
        tally.compare("given-shape", f"{path}: shape", *shapes)
    _strides(tally, path, a, b)
    for name in ("conj", "neg"):
        tally.compare("given-lazy", f"{path}: {name}", a.flag(name), b.flag(name))
    tally.compare("given-offset", f"{path}: storage offset", a.number("storage_offset"), b.number("storage_offset"))
    for name in _DETAILS:
        tally.compare("given-detail", f"{path}: {name}", a.flag(name), b.flag(name))
    tally.compare("given-detail", f"{path}: subclass", a.text("subclass") or NONE, b.text("subclass") or NONE)
    _values(tally, path, a, b)


def _strides(tally: Tally, path: str, a: Node, b: Node) -> None:
    """Strides of equal shapes; of others whether they are those of a tensor that was just made."""
    one, two = a.numbers("stride"), b.numbers("stride")
    if a.numbers("shape") == b.numbers("shape"):
        tally.compare("given-stride", f"{path}: strides", one, two)
    else:
        orders = ["contiguous" if _ordinary(side) else "other" for side in (a, b)]
        tally.compare("given-stride", f"{path}: strides", *orders)


def _ordinary(leaf: Node) -> bool:
    step = 1
    sizes, strides = leaf.numbers("shape"), leaf.numbers("stride")
    for size, stride in zip(reversed(sizes), reversed(strides), strict=False):
        if size != 1 and stride != step:
            return False
        step *= size or 1
    return True


def _values(tally: Tally, path: str, a: Node, b: Node) -> None:
    one, two = a.at("stats"), b.at("stats")
    if one.missing or two.missing:
        return
    for name in ("nan", "inf"):
        counts = [bool(side.number(name)) for side in (one, two)]
        tally.compare("given-nan", f"{path}: {name}", *counts)
    bounds = [(side.number("low"), side.number("high")) for side in (one, two)]
    if (a.text("dtype") or "").startswith(_INTEGERS):
        tally.compare("given-values", f"{path}: lowest and highest", *bounds)
    else:
        tally.skip("values of floating point inputs", *bounds)


def _shared(leaves: Mapping[str, Node]) -> tuple[object, ...]:
    groups: dict[str, list[str]] = defaultdict(list)
    for path, leaf in leaves.items():
        storage = leaf.text("storage")
        if storage is not None:
            groups[storage].append(path)
    return tuple(sorted(" and ".join(paths) for paths in groups.values() if len(paths) > 1))
