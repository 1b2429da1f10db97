"""The smallest sizes at which a failure stays: what to cut next, by the answers so far. Pure.

A size is cut for its symbol, hence in every input that shows it. First it is cut from its end, then from its start, so
that the rows which stay are those that the failure needs, with their values. Each search is a bisection: what is left
fails, and with one less in either direction it did not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import field

from aotidoctor.model.case import Case
from aotidoctor.model.contract import Dim
from aotidoctor.model.expr import Expr, evaluate, solve
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record


@record
class Place:
    """Dim ``dim`` of the input at ``path`` has ``size``, compiled as ``expr`` (None: a size of its own)."""

    path: str
    dim: int
    size: int
    expr: Expr | None

    def __str__(self) -> str:
        """``args[0].shape[1]``."""
        return f"{self.path}.shape[{self.dim}]"


@record
class Size:
    """A size that can be cut: its symbol or its place, what it is now, and the least that was compiled."""

    name: str
    value: int
    low: int
    places: tuple[Place, ...]


@record
class Part:
    """``size`` entries of a dim, from ``start`` on."""

    start: int
    size: int


# What to keep of each size, by its name.
Parts = Mapping[str, Part]


@record
class Smallest:
    """The end of a search: what is left, and the sizes at which the failure was gone, by name."""

    parts: Parts
    gone: Mapping[str, int] = field(default_factory=dict)


Search = Generator[Parts, bool, Smallest]


def sizes_of(case: Case) -> tuple[Size, ...]:
    """The dynamic sizes of the inputs, the batch first; those that inputs disagree about are left out."""
    places = list(_places(case))
    values: dict[str, set[int]] = {}
    lows: dict[str, int] = {}
    for place, dim in places:
        for name, value in _readings(place):
            values.setdefault(name, set()).add(value)
        low = solve(dim.expr, dim.min) if dim.expr is not None and dim.min is not None else None
        name = low[0] if low is not None else str(place)
        lows[name] = max(lows.get(name, 1), low[1] if low is not None else dim.min or 1)
    found = []
    for name, several in values.items():
        shown = tuple(place for place, _ in places if name in _names(place))
        alone = all(_names(place) == {name} for place in shown)
        if len(several) == 1 and alone and max(several) > lows.get(name, 1):
            found.append(Size(name=name, value=max(several), low=lows.get(name, 1), places=shown))
    return tuple(sorted(found, key=lambda one: (-sum(place.dim == 0 for place in one.places), -one.value, one.name)))


def _places(case: Case) -> Sequence[tuple[Place, Dim]]:
    given = case.tensors
    leaves = case.contract.tensor_leaves() if case.contract is not None else ()
    return [
        (Place(path=leaf.path, dim=at, size=size, expr=dim.expr), dim)
        for leaf in leaves
        if leaf.path in given and leaf.dims is not None and len(leaf.dims) == len(given[leaf.path].shape)
        for at, (dim, size) in enumerate(zip(leaf.dims, given[leaf.path].shape, strict=True))
        if dim.static is None
    ]


def _names(place: Place) -> frozenset[str]:
    return frozenset((str(place),)) if place.expr is None else place.expr.symbols


def _readings(place: Place) -> Sequence[tuple[str, int]]:
    if place.expr is None:
        return [(str(place), place.size)]
    solved = solve(place.expr, place.size)
    # A size that does not solve is a disagreement of its own: its symbol is not cut.
    return [solved] if solved is not None else [(name, -1) for name in place.expr.symbols]


def smallest(sizes: Sequence[Size]) -> Search:
    """Yields what to keep, is sent whether that still fails alike, returns what is left in the end."""
    parts = {one.name: Part(start=0, size=one.value) for one in sizes}
    gone: dict[str, int] = {}
    for one in sizes:
        size, passed = yield from _bisect(parts, one, _beginning, one.low, one.value)
        parts[one.name] = Part(start=0, size=size)
        if passed is not None and size > one.low:
            # Only where it stops failing earlier does it matter which entries are left.
            end = size
            size, passed = yield from _bisect(parts, one, _ending_at(end), one.low, end)
            parts[one.name] = Part(start=end - size, size=size)
        if passed is not None:
            gone[one.name] = passed
    return Smallest(parts=parts, gone=gone)


def _beginning(length: int) -> Part:
    return Part(start=0, size=length)


def _ending_at(end: int) -> Callable[[int], Part]:
    return lambda length: Part(start=end - length, size=length)


def _bisect(
    parts: Parts, size: Size, part: Callable[[int], Part], low: int, high: int
) -> Generator[Parts, bool, tuple[int, int | None]]:
    """The least length that fails, and the largest shorter one that does not (None: there is none)."""
    if low >= high:
        return high, None
    if (yield {**parts, size.name: part(low)}):
        return low, None
    while high - low > 1:
        middle = (low + high) // 2
        failed = yield {**parts, size.name: part(middle)}
        low, high = (low, middle) if failed else (middle, high)
    return high, low


def cuts(sizes: Sequence[Size], parts: Parts) -> list[tuple[Place, Part]]:
    """What to keep of each dim of the inputs; dims that stay whole are left out."""
    found = []
    for one in sizes:
        kept = parts[one.name]
        for place in one.places:
            cut = _cut(place, one.name, kept)
            if cut is not None and cut.size < place.size:
                found.append((place, cut))
    return found


def _cut(place: Place, name: str, kept: Part) -> Part | None:
    if place.expr is None:
        return kept
    nothing, before, size = (evaluate(place.expr, {name: value}) for value in (0, kept.start, kept.size))
    if nothing is None or before is None or size is None:
        return None
    return Part(start=before - nothing, size=size)


def steps_of(found: Sequence[tuple[Place, Part]]) -> list[JsonObject]:
    """The cuts as steps for the worker."""
    return [
        {"op": "slice_dim", "path": place.path, "dim": place.dim, "start": part.start, "size": part.size}
        for place, part in found
    ]


def lines_of(found: Sequence[tuple[Place, Part]]) -> str:
    """The cuts as lines of Python for the user."""
    return "\n".join(
        f"{place.path} = {place.path}.narrow({place.dim}, {part.start}, {part.size})" for place, part in found
    )
