"""Represent a kernel's index arithmetic as a graph: ranges of values, how they depend on axes, values by lane.

Values have a leading dimension for the programs of the grid, so that all of them are computed at once. Only what an
access needs is computed. Operations are sums, comparisons and choices in the types of Triton; ranges follow by
arithmetic on intervals, ends included.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.kernel_source import INT32, NUMPY, ORDER, Interval, integer_limits

# Intervals.
RANGES: Mapping[str, Callable[..., Interval | None]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": lambda a, b: (min(ends := [x * y for x in a for y in b]), max(ends)),
    "//": lambda a, b: (a[0] // b[1], a[1] // b[0]) if a[0] >= 0 and b[0] > 0 else None,
    "%": lambda a, b: None if a[0] < 0 or b[0] <= 0 else a if a[1] < b[0] else (0, min(a[1], b[1] - 1)),
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "where": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    "abs": lambda a: (0 if a[0] <= 0 <= a[1] else min(map(abs, a)), max(map(abs, a))),
    "to": lambda a: a,
    "reshape": lambda a: a,
}


def _less(a: Interval, b: Interval) -> bool | None:
    return True if a[1] < b[0] else False if a[0] >= b[1] else None


def _at_most(a: Interval, b: Interval) -> bool | None:
    return True if a[1] <= b[0] else False if a[0] > b[1] else None


TRUTHS: Mapping[str, Callable[[Interval, Interval], bool | None]] = {
    "<": _less,
    "<=": _at_most,
    ">": lambda a, b: _less(b, a),
    ">=": lambda a, b: _at_most(b, a),
}


class Unsliceable(Exception):  # noqa: N818 - a verdict about a kernel, not an error of ours
    """An address depends on something that only the interpreter computes; the message says on what."""


class IndexOverflow(Exception):  # noqa: N818 - a verdict about a kernel, not an error of ours
    """A 32-bit sum or product may not fit: the interpreter must examine it."""


@dataclass(slots=True)
class ProgramGrid:
    """The programs that are evaluated: numbers ``first`` to ``first + count - 1``, x fastest.

    ``made`` caches what was computed for them.
    """

    sizes: tuple[int, int, int]
    first: int
    count: int
    made: dict[int, Any] = field(default_factory=dict)

    def program(self, axis: int) -> Any:
        """The position of each program on one axis of the grid."""
        numbers = np.arange(self.first, self.first + self.count, dtype=np.int64)
        below = (1, self.sizes[0], self.sizes[0] * self.sizes[1])[axis]
        return (numbers // below % self.sizes[axis]).astype(np.int32)


@dataclass(slots=True, kw_only=True, eq=False)
class AddressNode:
    """One value: ``dtype`` as Triton names it, ``rank`` of its block (0 for a number), ``weak`` for a Python number.

    ``span`` is its range over all lanes (``find`` computes it once), ``make`` computes the values for a grid from the
    ``parts``.
    """

    what: str
    dtype: str
    rank: int
    parts: tuple[AddressNode, ...] = ()
    weak: bool = False
    value: Any = None
    span: Interval | None = None
    make: Callable[[ProgramGrid, tuple[Any, ...]], Any] | None = None
    size: int = 0
    find: Callable[[], Interval | None] | None = None

    def array(self, grid: ProgramGrid) -> Any:
        """Its values: programs first, then its block. Raises ``Unsliceable``, ``IndexOverflow``."""
        known = grid.made.get(id(self))
        if known is None:
            if self.make is None:
                raise Unsliceable(self.what)
            known = self.make(grid, tuple(part.array(grid) for part in self.parts))
            grid.made[id(self)] = known
        return known

    def interval(self, given: Mapping[int, Interval]) -> Interval | None:
        """The least and the greatest value; ``given`` has known ranges of some nodes. None where it is not known."""
        known = given.get(id(self))
        if self.find is not None and known is None:
            self.span, self.find = self.find(), None
        if known is not None or self.what not in RANGES:
            return known or self.span
        parts = self.parts
        if self.what == "where":
            # Of the two branches only the one that is taken, where that is known.
            taken = parts[0].truth(given)
            parts = parts[1:] if taken is None else (parts[1 if taken else 2],) * 2
        spans = [part.interval(given) for part in parts]
        if any(one is None for one in spans):
            return self.span
        made = RANGES[self.what](*spans)
        if made is None:
            return self.span
        low, high = integer_limits(self.dtype) or made
        return made if low <= made[0] and made[1] <= high else None

    def truth(self, given: Mapping[int, Interval]) -> bool | None:
        """True where it holds in every lane, False where in none, None where that is not known."""
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


def constant_node(value: float) -> AddressNode:
    """A Python number."""
    whole = isinstance(value, int)
    dtype = ("i32" if INT32[0] <= value <= INT32[1] else "i64") if whole else "fp32"
    dtype = "i1" if isinstance(value, bool) else dtype
    data = np.array([value], dtype=NUMPY[dtype])
    span = (int(value), int(value)) if whole else None
    return AddressNode(what="constant", dtype=dtype, rank=0, weak=True, value=value, span=span, make=lambda *_: data)


def number_node(value: float, dtype: str) -> AddressNode:
    """A number that a launch passes, of the signature's type."""
    made = constant_node(value)
    made.dtype, made.weak = dtype, False
    if dtype in NUMPY:
        data = np.array([value]).astype(NUMPY[dtype])
        made.make = lambda *_: data
    return made


def program_id(axis: int, size: int) -> AddressNode:
    """``tl.program_id(axis)`` of a grid with ``size`` programs along that axis."""
    return AddressNode(
        what=f"program {axis}",
        dtype="i32",
        rank=0,
        span=(0, size - 1),
        size=size,
        make=lambda grid, _: grid.program(axis),
    )


def arange(start: int, end: int) -> AddressNode:
    """``tl.arange(start, end)``."""
    return AddressNode(
        what="arange",
        dtype="i32",
        rank=1,
        span=(start, end - 1),
        size=end - start,
        value=start,
        make=lambda *_: np.arange(start, end, dtype=np.int32)[None],
    )


def opaque_node(why: str) -> AddressNode:
    """A value that is not followed."""
    return AddressNode(what=why, dtype="fp32", rank=-1)


def _common(a: AddressNode, b: AddressNode) -> str:
    """The type of a result, as Triton promotes: the type of a Python number gives way."""
    if a.weak != b.weak:
        strong, weak = (b, a) if a.weak else (a, b)
        if weak.dtype.startswith("fp") and not strong.dtype.startswith("fp"):
            return "fp32"
        if strong.dtype == "i1" and weak.dtype != "i1":
            return weak.dtype
        return strong.dtype
    return max(a.dtype, b.dtype, key=lambda one: ORDER.index(one) if one in ORDER else len(ORDER))


def align_rank(data: Any, rank: int, rank_of_partner: int) -> Any:
    """``data`` with as many dims of the block as ``rank_of_partner``: missing ones come first, behind the programs."""
    if rank >= rank_of_partner:
        return data
    return data.reshape((data.shape[0],) + (1,) * (rank_of_partner - rank) + data.shape[1:])


def binary_node(name: str, a: AddressNode, b: AddressNode) -> AddressNode:
    """``a + b`` and other binary operations, and comparisons."""
    if min(a.rank, b.rank) < 0:
        return opaque_node(a.what if a.rank < 0 else b.what)
    # Python divides and Triton divides alike where no number is negative.
    if a.what == b.what == "constant" and (
        name in _FOLDED
        or (name in _PYTHON and isinstance(a.value, int) and isinstance(b.value, int) and a.value >= 0 and b.value > 0)
    ):
        return constant_node((_PYTHON.get(name) or _COMPUTED[name])(a.value, b.value))
    compares = name in _COMPARES
    common = "fp32" if name == "/" and not _common(a, b).startswith("fp") else _common(a, b)
    if common not in NUMPY:
        return opaque_node(f"numbers of the type {common}")
    rank = max(a.rank, b.rank)
    made = AddressNode(what=name, dtype="i1" if compares else common, rank=rank, parts=(a, b))
    made.weak = a.weak and b.weak

    def make(grid: ProgramGrid, parts: tuple[Any, ...]) -> Any:
        left, right = align_rank(parts[0], a.rank, rank), align_rank(parts[1], b.rank, rank)
        if name in ("+", "-", "*") and common == "i32":
            # In 32 bits where the result fits them.
            if made.interval({}) is not None:
                return _COMPUTED[name](left.astype(np.int32, copy=False), right.astype(np.int32, copy=False))
            wide = _COMPUTED[name](left.astype(np.int64), right.astype(np.int64))
            if wide.size and (wide.min() < INT32[0] or wide.max() > INT32[1]):
                raise IndexOverflow
            return wide.astype(np.int32)
        left, right = (one.astype(NUMPY[common], copy=False) for one in (left, right))
        with np.errstate(all="ignore"):
            return _COMPUTED[name](left, right)

    made.make = make
    return made


def function_node(name: str, *parts: AddressNode, dtype: str | None = None, rank: int | None = None) -> AddressNode:
    """``where``, ``minimum``, ``maximum``, ``abs``, ``not``, ``to`` and other functions of blocks."""
    if any(part.rank < 0 for part in parts):
        return opaque_node(next(part.what for part in parts if part.rank < 0))
    made_rank = max(part.rank for part in parts) if rank is None else rank
    common = dtype or (_common(parts[-2], parts[-1]) if len(parts) > 1 else parts[0].dtype)
    if common not in NUMPY:
        return opaque_node(f"numbers of the type {common}")

    def make(grid: ProgramGrid, given: tuple[Any, ...]) -> Any:
        arrays = [align_rank(one, part.rank, made_rank) for one, part in zip(given, parts, strict=True)]
        with np.errstate(all="ignore"):
            return _FUNCTIONS[name](*arrays).astype(NUMPY[common], copy=False)

    return AddressNode(what=name, dtype=common, rank=made_rank, parts=parts, make=make)


def insert_dims(node: AddressNode, at: tuple[int | None, ...]) -> AddressNode:
    """``x[:, None]``: ``at`` has 0 for an existing dim and None for a new one."""
    if node.rank < 0:
        return node
    # The programs come first.
    key: tuple[Any, ...] = (slice(None), *(None if one is None else slice(None) for one in at))
    return AddressNode(
        what="reshape",
        dtype=node.dtype,
        rank=len(at),
        parts=(node,),
        size=node.size,
        make=lambda _, given: given[0][key],
    )


def _quotient(a: Any, b: Any) -> Any:
    """Integer division that truncates towards zero, as in C."""
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    signed = a.size and b.size and a.dtype.kind == "i" and (a.min() < 0 or b.min() < 0)
    return (a - np.fmod(a, b)) // b if signed else a // b


_COMPARES = ("<", "<=", ">", ">=", "==", "!=")
_COMPUTED: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": _quotient, "%": np.fmod, "/": operator.truediv,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
_PYTHON: Mapping[str, Callable[[Any, Any], Any]] = {"//": operator.floordiv, "%": operator.mod}
# Operations that are computed at once where both operands are constants.
_FOLDED = ("+", "-", "*", *_COMPARES)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "where": np.where, "minimum": np.minimum, "maximum": np.maximum, "abs": np.abs,
    "not": np.logical_not, "invert": np.invert, "to": lambda a: a, "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip


# Accesses: their addresses and masks as graphs.
@record
class IndexPointer:
    """A pointer: the kernel's argument, and how many elements behind its beginning; ``rank`` of its block."""

    argument: str
    offset: AddressNode


@record
class Access:
    """An access: ``what`` is ``load``, ``store``, ``atomic`` or ``assert`` (only ``mask`` is used: what must hold).

    ``line`` is the line of the kernel's text, ``order`` counts in the order of execution.
    """

    what: str
    line: int
    order: int
    argument: str = ""
    index: AddressNode | None = None
    mask: AddressNode | None = None
    message: str = ""

    def lanes(self, grid: ProgramGrid) -> tuple[Any, Any]:
        """Index and mask of every lane, of one shape. Raises what ``AddressNode.array`` raises."""
        if self.index is None:
            raise Unsliceable("an access without an address")
        rank = max(self.index.rank, self.mask.rank if self.mask is not None else 0)
        index = align_rank(self.index.array(grid), self.index.rank, rank)
        mask: Any = np.ones((1,) * index.ndim, dtype=bool)
        if self.mask is not None:
            mask = align_rank(self.mask.array(grid), self.mask.rank, rank).astype(bool, copy=False)
        shape = np.broadcast_shapes(index.shape, mask.shape, (grid.count,) + (1,) * rank)
        return np.broadcast_to(index, shape).astype(np.int64, copy=False), np.broadcast_to(mask, shape)
