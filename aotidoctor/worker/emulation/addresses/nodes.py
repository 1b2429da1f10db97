"""Index arithmetic of a kernel as a graph: what range a value lies in, how it depends on its axes, its values by lane.

Values carry a leading dimension for the programs of the grid, so that all of them are computed at once. Nothing is
computed that is not asked for: what an access does not need costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.worker.emulation.addresses.intervals import RANGES, TRUTHS
from aotidoctor.worker.emulation.dtypes import INT32, NUMPY, Interval, limits


class Unsliceable(Exception):  # noqa: N818 - a verdict about a kernel, not an error of ours
    """An address depends on something that only the interpreter computes; the text says on what."""


class Overflow(Exception):  # noqa: N818 - likewise
    """A 32-bit sum or product may not fit: for the full way to look at."""


@dataclass(slots=True)
class Grid:
    """The programs that are looked at: numbers ``first`` to ``first + count - 1``, x fastest.

    ``made`` keeps what was computed for them.
    """

    sizes: tuple[int, int, int]
    first: int
    count: int
    made: dict[int, Any] = field(default_factory=dict)

    def program(self, axis: int) -> Any:
        """The place on one axis of the grid of each program."""
        import numpy as np

        numbers = np.arange(self.first, self.first + self.count, dtype=np.int64)
        below = (1, self.sizes[0], self.sizes[0] * self.sizes[1])[axis]
        return (numbers // below % self.sizes[axis]).astype(np.int32)


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """One value: ``dtype`` as Triton names it, ``rank`` of its block (0 for a number), ``weak`` for a Python number.

    ``span`` is where it lies whatever the lanes (``find`` finds it out, once), ``make`` computes it for a grid from its
    ``parts``.
    """

    what: str
    dtype: str
    rank: int
    parts: tuple[Node, ...] = ()
    weak: bool = False
    value: Any = None
    span: Interval | None = None
    make: Callable[[Grid, tuple[Any, ...]], Any] | None = None
    size: int = 0
    find: Callable[[], Interval | None] | None = None

    def array(self, grid: Grid) -> Any:
        """Its values: programs first, then its block. Raises ``Unsliceable``, ``Overflow``."""
        known = grid.made.get(id(self))
        if known is None:
            if self.make is None:
                raise Unsliceable(self.what)
            known = self.make(grid, tuple(part.array(grid) for part in self.parts))
            grid.made[id(self)] = known
        return known

    def interval(self, given: Mapping[int, Interval]) -> Interval | None:
        """The least and the greatest value; ``given`` are what is known of some nodes. None where that is not known."""
        known = given.get(id(self))
        if self.find is not None and known is None:
            self.span, self.find = self.find(), None
        if known is not None or self.what not in RANGES:
            return known or self.span
        parts = [part.interval(given) for part in self._followed(given)]
        if any(one is None for one in parts):
            return self.span
        made = RANGES[self.what](*parts)
        if made is None:
            return self.span
        low, high = limits(self.dtype) or made
        return made if low <= made[0] and made[1] <= high else None

    def _followed(self, given: Mapping[int, Interval]) -> tuple[Node, ...]:
        """The parts that the value may be made of: of two branches, only the one that is taken, where that is known."""
        if self.what != "where":
            return self.parts
        taken = self.parts[0].truth(given)
        _, a, b = self.parts
        return (a, b) if taken is None else (a, a) if taken else (b, b)

    def truth(self, given: Mapping[int, Interval]) -> bool | None:
        """Whether it holds in every lane, or in none; None where that is not known."""
        if self.what in ("|", "&"):
            a, b = (part.truth(given) for part in self.parts)
            decided = self.what == "|"
            if decided in (a, b):
                return decided
            return None if a is None or b is None else not decided
        if self.what in ("not", "invert") and self.dtype == "i1":
            inner = self.parts[0].truth(given)
            return None if inner is None else not inner
        if self.what in ("to", "reshape"):
            return self.parts[0].truth(given)
        if self.what == "constant":
            return bool(self.value)
        if self.what not in TRUTHS:
            return None
        left, right = (part.interval(given) for part in self.parts)
        return None if left is None or right is None else TRUTHS[self.what](left, right)


def constant(value: float) -> Node:
    """A number of Python's."""
    import numpy as np

    whole = isinstance(value, int)
    dtype = (
        "i1" if isinstance(value, bool) else ("i32" if INT32[0] <= value <= INT32[1] else "i64") if whole else "fp32"
    )
    data = np.array([value], dtype=NUMPY[dtype])
    span = (int(value), int(value)) if whole else None
    return Node(what="constant", dtype=dtype, rank=0, weak=True, value=value, span=span, make=lambda *_: data)


def number(value: float, dtype: str) -> Node:
    """A number that a launch passes, of the signature's type."""
    made = constant(value)
    made.dtype, made.weak = dtype, False
    if dtype in NUMPY:
        data = _cast([value], dtype)
        made.make = lambda *_: data
    return made


def _cast(values: Any, dtype: str) -> Any:
    import numpy as np

    return np.array(values).astype(NUMPY[dtype])


def program_id(axis: int, size: int) -> Node:
    """``tl.program_id(axis)`` of a grid with so many programs along it."""
    return Node(
        what=f"program {axis}",
        dtype="i32",
        rank=0,
        span=(0, size - 1),
        size=size,
        make=lambda grid, _: grid.program(axis),
    )


def arange(start: int, end: int) -> Node:
    """``tl.arange(start, end)``."""
    import numpy as np

    def make(grid: Grid, parts: tuple[Any, ...]) -> Any:
        return np.arange(start, end, dtype=np.int32)[None]

    return Node(what="arange", dtype="i32", rank=1, span=(start, end - 1), size=end - start, value=start, make=make)


def opaque(why: str) -> Node:
    """A value that is not followed."""
    return Node(what=why, dtype="fp32", rank=-1)
