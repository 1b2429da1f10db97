"""What a generated kernel computes, as a small tree over the elements that it reads.

The trees stay small (``LARGEST``): a value that took more steps is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

LARGEST = 400
# The operation of a value whose operands are known and whose meaning is not.
UNTOLD = "?"


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
    """An operation: ``+ - * / %``, ``floordiv``, ``remainder``, comparisons, ``& | ~``, ``where``, ``min``, ``max``."""

    operation: str
    operands: tuple[Value, ...]
    size: int = field(default=1, compare=False)


Value = Number | Variable | Read | Computed


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around a statement: the variable runs from ``start`` to ``end``, exclusive, in steps of 1.

    A vector loop in steps of 16 is one over all lanes: statements are read for one lane.
    """

    name: str
    start: Value
    end: Value


def computed(operation: str, *operands: Value) -> Value:
    """The operation, or something that cannot be followed where it grows too large."""
    size = 1 + sum(operand.size for operand in operands)
    if size <= LARGEST:
        return Computed(operation, operands, size)
    return Variable("too large to follow")


def read(parameter: str, at: Value) -> Value:
    """The element at ``at`` of ``parameter``."""
    return Read(parameter, at, 1 + at.size) if at.size < LARGEST else Variable("too large to follow")


def untold(*operands: Value) -> Value:
    """Something that depends on ``operands`` in a way that is not known."""
    return computed(UNTOLD, *operands)


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
