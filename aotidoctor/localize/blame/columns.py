"""Computes values of a kernel for all iterations of its loops at once, column by column, in plain Python.

A column holds one number per iteration, None where it cannot be told (an element that nobody wrote, a division by
zero). What depends on something unknown has no column at all.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from aotidoctor.localize.blame.computed import Computed, Loop, Number, Read, Value, Variable, parts

Number_ = int | None
Column = Sequence[Number_]
MOST_ITERATIONS = 600_000


class Memory(Protocol):
    """The elements behind a parameter, by offset."""

    def column(self, offsets: Column) -> Column:
        """The element at each offset, None where there is none."""


Memories = Callable[[str], Memory | None]


def _divide(left: int, right: int) -> int | None:
    """C++ cuts towards zero."""
    return None if right == 0 else abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def _modulo(left: int, right: int) -> int | None:
    return None if right == 0 else left - right * (_divide(left, right) or 0)


_TWO: Mapping[str, Callable[[int, int], int | None]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _modulo,
    "floordiv": lambda left, right: left // right if right else None,
    "floor_divide": lambda left, right: left // right if right else None,
    "remainder": lambda left, right: left % right if right else None,
    "min": min,
    "max": max,
    "<": lambda left, right: int(left < right),
    "<=": lambda left, right: int(left <= right),
    ">": lambda left, right: int(left > right),
    ">=": lambda left, right: int(left >= right),
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "&": operator.and_,
    "|": operator.or_,
    "and": lambda left, right: int(bool(left) and bool(right)),
    "or": lambda left, right: int(bool(left) or bool(right)),
}
_ONE: Mapping[str, Callable[[int], int | None]] = {
    "neg": operator.neg,
    "abs": abs,
    # Of a truth value; the bits of other numbers are not turned round in indices.
    "~": lambda value: 1 - value if value in (0, 1) else None,
}


class UnknownError(Exception):
    """Something in the value is not known."""


class Grid:
    """All iterations of the loops that some values depend on, the innermost running fastest.

    ``sizes`` are the numbers that the kernel is given (``ks0``). Raises ``UnknownError`` where an end of a loop is not
    known, or where there are too many iterations to look at.
    """

    def __init__(
        self, loops: Sequence[Loop], values: Sequence[Value], sizes: Mapping[str, int], memories: Memories
    ) -> None:
        self._memories = memories
        self._columns: dict[str, int | Column] = dict(sizes)
        self._made: dict[int, tuple[Value, int | Column]] = {}
        self.count = 1
        wanted = {part.name for value in values for part in parts(value) if isinstance(part, Variable)}
        used = {loop.name: loop for loop in loops if loop.name in wanted}
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
                return _told(one(only))
            return [None if item is None else one(item) for item in only]
        two = _TWO.get(operation)
        if two is None or len(operands) != 2:
            raise UnknownError
        left, right = operands
        if isinstance(left, int) and isinstance(right, int):
            return _told(two(left, right))
        pairs = zip(self._spread(left), self._spread(right), strict=True)
        return [None if a is None or b is None else two(a, b) for a, b in pairs]

    def _spread(self, column: int | Column) -> Column:
        return [column] * self.count if isinstance(column, int) else column


def _told(value: int | None) -> int:
    if value is None:
        raise UnknownError
    return value
