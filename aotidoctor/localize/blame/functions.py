"""What the functions in generated kernels do to the one lane that is followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotidoctor.localize.blame.computed import Computed, Value, Variable, computed, untold
from aotidoctor.localize.blame.tokens import Token

_INTEGERS = frozenset(("int64_t", "int32_t", "long", "int", "tl.int64", "tl.int32", "int64", "int32"))
_UNSIGNED = "std::make_unsigned_t<"
# Functions that hand on an argument, by its position.
_SAME: Mapping[str, int] = {
    "Vectorized": 0,
    "VectorizedN": 0,
    "VecMask": 0,
    "from": 0,
    "cast": -1,
    "data": -1,
    "arange": 0,
    "broadcast_to": 0,
    "full": 1,
    "set": 1,
    "blend": 1,
    "to_int": -1,
}
_OPERATIONS: Mapping[str, tuple[str, int]] = {
    "remainder_integral": ("remainder", 2),
    "remainder_integer": ("remainder", 2),
    "mod": ("%", 2),
    "floor_divide_integral": ("floor_divide", 2),
    "div_floor_integer": ("floordiv", 2),
    "min_propagate_nan": ("min", 2),
    "max_propagate_nan": ("max", 2),
    "minimum": ("min", 2),
    "maximum": ("max", 2),
    "min": ("min", 2),
    "max": ("max", 2),
    "where": ("where", 3),
}
KNOWN = frozenset((*_OPERATIONS, *_SAME))
LOADS = frozenset(("loadu", "load"))
_DIVIDING = ("remainder", "%", "floor_divide")


def divisor_of(function: str, arguments: Sequence[Value]) -> Value | None:
    """The divisor, where the function divides whole numbers and counts a zero."""
    operation = _OPERATIONS.get(function)
    return arguments[1] if operation is not None and operation[0] in _DIVIDING and len(arguments) == 2 else None


def meaning(name: Token, receiver: Value | None, arguments: Sequence[Value]) -> Value:
    """The value of ``name(arguments)`` or ``receiver.name(arguments)``."""
    function = name.text
    if function == "blendv" and len(arguments) == 3:
        return computed("where", arguments[2], arguments[1], arguments[0])
    if function in ("neg", "abs") and (receiver is not None or arguments):
        return computed(function, receiver if receiver is not None and not arguments else arguments[0])
    if function in ("static_cast", "convert", "to") or is_type(function):
        return _cast(name, receiver, arguments)
    operation = _OPERATIONS.get(function)
    if operation is not None and len(arguments) == operation[1]:
        return computed(operation[0], *arguments)
    position = _SAME.get(function)
    if position == -1 and receiver is not None:
        return receiver
    if position is not None and 0 <= position < len(arguments):
        return arguments[position]
    return untold(*([] if receiver is None else [receiver]), *arguments)


def is_type(name: str) -> bool:
    """Whether it is an integer type, whose name also casts."""
    return name in _INTEGERS


def _cast(name: Token, receiver: Value | None, arguments: Sequence[Value]) -> Value:
    """Casts between integers of 32 and 64 bits keep what an index can be; others are not followed."""
    inner = receiver if receiver is not None else arguments[0] if arguments else untold()
    if is_type(name.text):
        return inner
    types = (name.types or "").split(",")
    if name.text == "to" and name.types is None:
        types = [one.name for one in arguments if isinstance(one, Variable)]
    # ``convert<int64_t,2,int32_t,1>`` names the target first, and the source behind it.
    named = [_signed(word.strip()) for word in types if not word.strip().isdecimal()]
    return inner if named and all(map(is_type, named)) else untold(inner)


def _signed(name: str) -> str:
    """The type that is unsigned for one sum, difference or product, whose overflow would be undefined otherwise."""
    return name[len(_UNSIGNED) : -1] if name.startswith(_UNSIGNED) and name.endswith(">") else name


def temporary(value: Value) -> Value:
    """What is loaded from a temporary array: whatever was put there."""
    return value.operands[0] if isinstance(value, Computed) and value.operation == "+" else value
