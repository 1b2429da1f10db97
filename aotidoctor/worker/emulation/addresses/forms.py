"""Which addresses an access has, without computing one: sums of axes, each of which takes every value up to a bound.

``x0 + 24*x1`` with ``x0`` below 24 covers a run of elements, each once; so nothing of it needs to be looked at by lane.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.addresses.nodes import Node
from aotidoctor.worker.emulation.dtypes import Interval

_LESS = {"<": 1, "<=": 0}
_MORE = {">": 1, ">=": 0}


@record
class Form:
    """Elements ``start`` to ``last``, each at most once, all where ``whole``. Equal forms have equal ``key``s."""

    start: int
    last: int
    whole: bool
    key: tuple[Any, ...]


def bounds_of(mask: Node | None) -> tuple[dict[int, Interval], dict[int, Node], bool]:
    """What a mask says of nodes: their range where it holds, the nodes, and whether that is all that it says.

    A range that is empty stands for a mask that never holds.
    """
    known: dict[int, Interval] = {}
    nodes: dict[int, Node] = {}
    complete = True
    for one in _parts(mask):
        told = _bound(one)
        if told is None:
            complete = False
            continue
        node, low, high = told
        before = known.get(id(node)) or node.interval({})
        if before is None:
            complete = False
            continue
        known[id(node)] = (max(low, before[0]), min(high, before[1]))
        nodes[id(node)] = node
    return known, nodes, complete


def _parts(mask: Node | None) -> list[Node]:
    if mask is None:
        return []
    if mask.what == "&":
        return [*_parts(mask.parts[0]), *_parts(mask.parts[1])]
    # ``tl.full([XBLOCK], True, tl.int1)``
    return [] if mask.what == "to" and mask.parts[0].what == "constant" and mask.parts[0].value else [mask]


def _bound(node: Node) -> tuple[Node, int, int] | None:
    """``a < 5`` as ``(a, least, most)``."""
    if len(node.parts) != 2 or node.what not in (*_LESS, *_MORE):
        return None
    left, right = node.parts
    limit = right.interval({})
    if limit is None or limit[0] != limit[1]:
        return None
    far = 1 << 62
    if node.what in _LESS:
        return left, -far, limit[0] - _LESS[node.what]
    return left, limit[0] + _MORE[node.what], far


def form_of(
    index: Node, known: Mapping[int, Interval], nodes: Mapping[int, Node], grid: tuple[int, int, int]
) -> Form | None:
    """The form of an index with a mask that says ``known`` of ``nodes`` and nothing else; None where it has none."""
    linear = _linear(index, known)
    if linear is None:
        return None
    start, terms = linear
    runs = {one: known[one][1] + 1 for one in known if known[one][0] == 0 and _is_run(nodes[one])}
    if len(runs) != len(known) or any(one not in terms for one in known):
        # An axis that bounds the lanes and is not in the index: the same elements again and again.
        return None
    if not _programs_within(terms, grid):
        return None
    steps = sorted((coefficient, runs.get(one) or node.size, one) for one, (coefficient, node) in terms.items())
    reach, whole = 0, True
    for coefficient, size, _ in steps:
        if size <= 1:
            continue
        if coefficient <= reach:
            return None
        whole = whole and coefficient == reach + 1
        reach += coefficient * (size - 1)
    if any(size <= 0 for _, size, _ in steps):
        return Form(start=start, last=start - 1, whole=True, key=())
    return Form(start=start, last=start + reach, whole=whole, key=(start, *steps))


def _programs_within(terms: Mapping[int, tuple[int, Node]], grid: tuple[int, int, int]) -> bool:
    """Whether the index tells every program from every other."""
    found = {part.what for _, node in terms.values() for part in _leaves(node)}
    return all(size == 1 or f"program {axis}" in found for axis, size in enumerate(grid))


def _leaves(node: Node) -> list[Node]:
    return [one for part in node.parts for one in _leaves(part)] if node.parts else [node]


def _is_run(node: Node) -> bool:
    """Whether it takes every value from 0 on, each in one lane."""
    linear = _linear(node, {})
    if linear is None or linear[0] != 0:
        return False
    reach = 0
    for coefficient, size in sorted((coefficient, one.size) for coefficient, one in linear[1].values()):
        if size > 1 and coefficient != reach + 1:
            return False
        reach += coefficient * (size - 1)
    return True


def _linear(node: Node, stops: Mapping[int, Any]) -> tuple[int, dict[int, tuple[int, Node]]] | None:
    """``(constant, {axis: (coefficient, node)})``; axes are the nodes of ``stops``, programs and ranges."""
    if id(node) in stops:
        return 0, {id(node): (1, node)}
    match node.what:
        case "constant" if isinstance(node.value, int):
            return int(node.value), {}
        case "arange":
            return int(node.value), {id(node): (1, node)}
        case "program 0" | "program 1" | "program 2":
            return 0, {hash(node.what): (1, node)}
        case "reshape":
            return _linear(node.parts[0], stops)
        case "to" if node.dtype in ("i32", "i64") and node.interval({}) is not None:
            return _linear(node.parts[0], stops)
        case "+" | "-":
            return _sum(node, stops)
        case "*":
            return _scaled(node, stops)
    return None


def _sum(node: Node, stops: Mapping[int, Any]) -> tuple[int, dict[int, tuple[int, Node]]] | None:
    left, right = (_linear(part, stops) for part in node.parts)
    if left is None or right is None:
        return None
    sign = 1 if node.what == "+" else -1
    terms = dict(left[1])
    for one, (coefficient, what) in right[1].items():
        terms[one] = (terms.get(one, (0, what))[0] + sign * coefficient, what)
    return left[0] + sign * right[0], terms


def _scaled(node: Node, stops: Mapping[int, Any]) -> tuple[int, dict[int, tuple[int, Node]]] | None:
    left, right = (_linear(part, stops) for part in node.parts)
    if left is None or right is None or (left[1] and right[1]):
        return None
    factor, (start, terms) = (left[0], right) if not left[1] else (right[0], left)
    return factor * start, {one: (factor * coefficient, what) for one, (coefficient, what) in terms.items()}
