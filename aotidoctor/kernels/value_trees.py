"""Represent what a generated kernel computes, and evaluate it for all iterations of its loops at once.

A value is a small tree over the elements that the kernel reads; a value that took more than ``LARGEST`` steps is not
followed. Evaluation is column by column, in plain Python: a column holds one number per iteration, None where it is
unknown (an element that nobody wrote, a division by zero). What depends on something unknown has no column at all.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from aotidoctor.kernels.expressions import OPERATIONS
from aotidoctor.model.record import record

# Trees.
LARGEST = 400
# The operation of a value whose operands are known and whose meaning is not.
UNKNOWN_FUNCTION = "?"


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number."""

    value: int
    size: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A loop variable (``x0``), a size that the kernel is given (``ks0``), or a name that was not understood."""

    name: str
    size: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    """An element that the kernel reads through one of its parameters, at an offset in elements."""

    parameter: str
    at: Value
    size: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Computed:
    """An operation: ``+ - * / // %``, ``remainder``, comparisons, ``& | ~``, ``where``, ``min``, ``max``."""

    operation: str
    operands: tuple[Value, ...]
    size: int = field(default=1, compare=False)


Value = Number | Variable | Read | Computed


@dataclass(frozen=True, slots=True)
class IterationLoop:
    """A loop around a statement: the variable runs from ``start`` to ``end``, exclusive, in steps of 1.

    A vector loop in steps of 16 is one over all lanes: statements are read for one lane.
    """

    name: str
    start: Value
    end: Value


def make_computed(operation: str, *operands: Value) -> Value:
    """The operation, or something that cannot be followed where it grows too large."""
    size = 1 + sum(operand.size for operand in operands)
    if size <= LARGEST:
        return Computed(operation, operands, size)
    return Variable("too large to follow")


def read(parameter: str, at: Value) -> Value:
    """The element at ``at`` of ``parameter``."""
    return Read(parameter, at, 1 + at.size) if at.size < LARGEST else Variable("too large to follow")


def unknown_value(*operands: Value) -> Value:
    """Something that depends on ``operands`` in a way that is not known."""
    return make_computed(UNKNOWN_FUNCTION, *operands)


def parts(value: Value) -> Iterator[Value]:
    """``value`` and everything below it."""
    yield value
    match value:
        case Read(at=at):
            yield from parts(at)
        case Computed(operands=operands):
            for operand in operands:
                yield from parts(operand)


def reads(value: Value) -> tuple[Read, ...]:
    """The elements that ``value`` is computed from, without those that only say which element is read."""
    match value:
        case Read():
            return (value,)
        case Computed(operands=operands):
            return tuple(dict.fromkeys(one for operand in operands for one in reads(operand)))
        case _:
            return ()


def factor(value: Value, inner: Value) -> Value | None:
    """``k`` where ``value`` is ``k*inner`` and terms without it: the stride with which ``inner`` walks."""
    if value == inner:
        return Number(1)
    match value:
        case Computed(operation="+", operands=(left, right)):
            found = [one for one in (factor(left, inner), factor(right, inner)) if one is not None]
            return found[0] if len(found) == 1 else None
        case Computed(operation="*", operands=(left, right)) if right == inner:
            return left
        case Computed(operation="*", operands=(left, right)) if left == inner:
            return right
        case _:
            return None


# Checks, divisions, accesses and stores of one kernel.
@record
class KernelCheck:
    """A bound check. ``variable`` and ``bound`` are the words of its message; ``line`` counts in the member.

    ``mask`` is true where the check counts, None where it counts everywhere.
    """

    variable: str
    bound: str
    line: int
    value: Value
    limit: Value
    mask: Value | None
    loops: tuple[IterationLoop, ...]


@record
class Division:
    """A division by ``divisor``; ``function`` is the operator or the function that divides."""

    function: str
    divisor: Value
    line: int
    loops: tuple[IterationLoop, ...]


@record
class ElementStore:
    """``value`` is written to offset ``at`` of ``parameter``."""

    parameter: str
    at: Value
    value: Value
    loops: tuple[IterationLoop, ...]


@dataclass(frozen=True, slots=True)
class ElementAccess:
    """A read or a write at offset ``at`` of ``parameter``."""

    parameter: str
    at: Value
    loops: tuple[IterationLoop, ...]


@dataclass(slots=True)
class KernelFlow:
    """The checks, divisions, stores and accesses of a kernel, in the order of the text."""

    checks: list[KernelCheck] = field(default_factory=list)
    divisions: list[Division] = field(default_factory=list)
    stores: list[ElementStore] = field(default_factory=list)
    accesses: list[ElementAccess] = field(default_factory=list)


# Columns.
Number_ = int | None
Column = Sequence[Number_]
MOST_ITERATIONS = 600_000


class ElementMemory(Protocol):
    """The elements behind a parameter, by offset."""

    def column(self, offsets: Column) -> Column:
        """The element at each offset, None where there is none."""


ElementMemories = Callable[[str], ElementMemory | None]


_ONE: Mapping[str, Callable[[int], int | None]] = {
    "neg": operator.neg,
    "abs": abs,
    # Of a truth value; indices never invert the bits of other numbers.
    "~": lambda value: 1 - value if value in (0, 1) else None,
}


class UnknownError(Exception):
    """Something in the value is not known."""


class IterationGrid:
    """All iterations of the loops that some values depend on, the innermost running fastest.

    ``sizes`` are the numbers that the kernel is given (``ks0``). Raises ``UnknownError`` where an end of a loop is not
    known, or where there are too many iterations to look at.
    """

    def __init__(
        self,
        loops: Sequence[IterationLoop],
        values: Sequence[Value],
        sizes: Mapping[str, int],
        memories: ElementMemories,
    ) -> None:
        self._memories = memories
        self._columns: dict[str, int | Column] = dict(sizes)
        self._made: dict[int, tuple[Value, int | Column]] = {}
        self.count = 1
        names = {part.name for value in values for part in parts(value) if isinstance(part, Variable)}
        used = {loop.name: loop for loop in loops if loop.name in names}
        ranges = [range(self._whole(loop.start), self._whole(loop.end)) for loop in used.values()]
        for span in ranges:
            self.count *= len(span)
            if self.count > MOST_ITERATIONS:
                raise UnknownError
        inner = self.count
        for name, span in zip(used, ranges, strict=True):
            inner //= max(len(span), 1)
            once = [at for at in span for _ in range(inner)]
            self._columns[name] = once * (self.count // len(once)) if once else once

    def column(self, value: Value) -> Column:
        """The value at each iteration. Raises ``UnknownError``."""
        return self._spread(self._column(value))

    def _whole(self, value: Value) -> int:
        found = self._column(value)
        if not isinstance(found, int):
            raise UnknownError
        return found

    def _column(self, value: Value) -> int | Column:
        known = self._made.get(id(value))
        if known is None:
            known = self._made[id(value)] = value, self._make(value)
        return known[1]

    def _make(self, value: Value) -> int | Column:
        match value:
            case Number(value=number):
                return number
            case Variable(name=name):
                if name.endswith("_inner"):
                    return 0
                if name not in self._columns:
                    raise UnknownError
                return self._columns[name]
            case Read(parameter=parameter, at=at):
                memory = self._memories(parameter)
                if memory is None:
                    raise UnknownError
                return memory.column(self.column(at))
            case Computed(operation=operation, operands=operands):
                return self._operate(operation, [self._column(operand) for operand in operands])

    def _operate(self, operation: str, operands: list[int | Column]) -> int | Column:
        if operation == "where":
            chosen = [self._spread(operand) for operand in operands]
            return [
                None if test is None else (left if test else right) for test, left, right in zip(*chosen, strict=True)
            ]
        if operation in _ONE and len(operands) == 1:
            one = _ONE[operation]
            (only,) = operands
            if isinstance(only, int):
                return _known_value(one(only))
            return [None if item is None else one(item) for item in only]
        two = OPERATIONS.get(operation)
        if two is None or len(operands) != 2:
            raise UnknownError
        left, right = operands
        if isinstance(left, int) and isinstance(right, int):
            return _known_value(two(left, right))
        pairs = zip(self._spread(left), self._spread(right), strict=True)
        return [None if a is None or b is None else two(a, b) for a, b in pairs]

    def _spread(self, column: int | Column) -> Column:
        return [column] * self.count if isinstance(column, int) else column


def _known_value(value: int | None) -> int:
    if value is None:
        raise UnknownError
    return value
