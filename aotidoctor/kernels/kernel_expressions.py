"""What one lane of a generated kernel computes, C++ or Triton: the ``Value`` of an expression.

One lane is read for all: a vector is its element, a mask a truth value, and what only moves lanes about (loading,
storing to a temporary array, broadcasting, casting between integers) changes nothing. An unknown function gives a value
that depends on its arguments and cannot be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from aotidoctor.kernels.expressions import Syntax, UnreadableExpressionError, syntax_of
from aotidoctor.kernels.value_trees import Computed, Number, Value, Variable, make_computed, read, unknown_value

_LONGEST_LINE = 4000


def lines_of(text: str, first: int) -> Iterator[tuple[int, str]]:
    """The statements of a kernel that are not too long to be read, by line, of which the first has number ``first``."""
    for number, raw in enumerate(text.split("\n"), first):
        line = raw.strip()
        if line and len(line) < _LONGEST_LINE:
            yield number, line


def mask_of(condition: str) -> str | None:
    """The mask under which a check counts: ``tmp3`` of ``(tmp1 < 10) | ~(tmp3)``; None: everywhere."""
    _, masked, mask = condition.partition("| ~(")
    return argument(mask) if masked else None


def argument(text: str) -> str:
    """``text`` up to the comma or bracket that ends the first argument of a call."""
    depth = 0
    for at, sign in enumerate(text):
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and sign == ","):
            return text[:at]
    return text


# What functions do to the one lane.
_INTEGERS = frozenset(("int64_t", "int32_t", "long", "int", "tl.int64", "tl.int32", "int64", "int32"))
_UNSIGNED = "std::make_unsigned_t<"
# Functions that return an argument, by its position.
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
    "floor_divide_integral": ("//", 2),
    "div_floor_integer": ("//", 2),
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
_DIVIDING = ("remainder_integral", "remainder_integer", "mod", "floor_divide_integral")


def meaning(function: str, types: Sequence[str], receiver: Value | None, arguments: Sequence[Value]) -> Value:
    """The value of ``function<types>(arguments)`` or ``receiver.function<types>(arguments)``."""
    if function == "blendv" and len(arguments) == 3:
        return make_computed("where", arguments[2], arguments[1], arguments[0])
    if function in ("neg", "abs") and (receiver is not None or arguments):
        return make_computed(function, receiver if receiver is not None and not arguments else arguments[0])
    if function in ("static_cast", "convert", "to") or is_type(function):
        # Casts between integers of 32 and 64 bits keep what an index can be; others are not followed.
        inner = receiver if receiver is not None else arguments[0] if arguments else unknown_value()
        if is_type(function):
            return inner
        listed = ",".join(types).split(",")
        if function == "to" and not types:
            listed = [one.name for one in arguments if isinstance(one, Variable)]
        # ``convert<int64_t,2,int32_t,1>`` names the target first, and the source behind it.
        # A type may be unsigned for one sum, difference or product, whose overflow would be undefined otherwise.
        words = [word.strip() for word in listed if not word.strip().isdecimal()]
        named = [
            word[len(_UNSIGNED) : -1] if word.startswith(_UNSIGNED) and word.endswith(">") else word for word in words
        ]
        return inner if named and all(map(is_type, named)) else unknown_value(inner)
    operation = _OPERATIONS.get(function)
    if operation is not None and len(arguments) == operation[1]:
        return make_computed(operation[0], *arguments)
    position = _SAME.get(function)
    if position == -1 and receiver is not None:
        return receiver
    if position is not None and 0 <= position < len(arguments):
        return arguments[position]
    return unknown_value(*([] if receiver is None else [receiver]), *arguments)


def is_type(name: str) -> bool:
    """Whether ``name`` is an integer type, whose name is also a cast."""
    return name in _INTEGERS


def temporary(value: Value) -> Value:
    """The value loaded from a temporary array: what was stored there."""
    return value.operands[0] if isinstance(value, Computed) and value.operation == "+" else value


# Expressions.
_DECLTYPE = Variable("decltype")


class ExpressionReader:
    """Read expressions. ``resolve`` gives the value of a name, ``parameters`` are the names that point to tensors.

    ``on_division`` is called with each function that divides and its divisor.
    """

    def __init__(
        self,
        resolve: Callable[[str], Value],
        parameters: frozenset[str],
        on_division: Callable[[str, Value], None] = lambda _function, _divisor: None,
    ) -> None:
        self._resolve = resolve
        self._parameters = parameters
        self._on_division = on_division

    def value(self, text: str) -> Value:
        """The value of an expression. Never raises: what cannot be read is a value that cannot be computed."""
        try:
            return self._of(syntax_of(text))
        except UnreadableExpressionError:
            return Variable("unreadable")

    def pointer(self, value: Value) -> tuple[str, Value] | None:
        """``(parameter, offset)`` of ``in_ptr0 + 16*x0``."""
        match value:
            case Variable(name=name) if name in self._parameters:
                return name, Number(0)
            case Computed(operation="+", operands=(left, right)):
                inner = self.pointer(left)
                if inner is None:
                    return None
                return inner[0], right if inner[1] == Number(0) else make_computed("+", inner[1], right)
            case _:
                return None

    def _of(self, node: Syntax) -> Value:
        kind, text, parts, more = node
        if kind == "number" and text.isdecimal() and len(text) < 20:
            return Number(int(text))
        if kind == "name":
            return self._resolve(text) if text.isidentifier() and text not in self._parameters else Variable(text)
        values = [self._of(part) for part in parts]
        match kind:
            case "unary" if text in "-~!":
                inner = values[0]
                negative = Number(-inner.value) if isinstance(inner, Number) else make_computed("neg", inner)
                return negative if text == "-" else make_computed("~", inner)
            case "unary":
                # An address, and what is there.
                return values[0]
            case "chain":
                return self._chain(values, more)
            case "choose":
                return make_computed("where", *values)
            case "call":
                return self._call(text, more, None, values)
            case "method":
                return self._call(text, more, values[0], values[1:])
            case "apply" if values[0] == _DECLTYPE:
                return values[1] if len(values) == 2 else unknown_value(*values[1:])
            case "apply" if len(values) == 1:
                # The call of a lambda.
                return values[0]
            case "subscript":
                return self._subscript(*values)
            case _:
                return unknown_value(*values)

    def _chain(self, values: Sequence[Value], signs: Sequence[str]) -> Value:
        found = values[0]
        for sign, other in zip(signs, values[1:], strict=True):
            if sign in ("/", "%"):
                self._on_division(sign, other)
            found = make_computed(sign, found, other)
        return found

    def _call(self, name: str, types: Sequence[str], receiver: Value | None, arguments: Sequence[Value]) -> Value:
        """A load, a function: ``at::vec::VectorizedN<int64_t,2>::loadu(...)``, ``tl.load(...)``; or a lambda."""
        if name == "decltype" and receiver is None:
            return _DECLTYPE
        if receiver is None and name.isidentifier() and not types and name not in KNOWN and not is_type(name):
            known = self._resolve(name)
            if known != Variable(name):
                return known
        function = name.rpartition(":")[2].rpartition(".")[2]
        if function in LOADS and arguments:
            pointer = self.pointer(arguments[0])
            return read(*pointer) if pointer is not None else temporary(arguments[0])
        # Only those that divide whole numbers, and count a zero.
        if function in _DIVIDING and len(arguments) == 2:
            self._on_division(function, arguments[1])
        return meaning(function, types, receiver, arguments)

    def _subscript(self, base: Value, *at: Value) -> Value:
        """``in_ptr0[...]``; a lane of a temporary array (``tmp1[x1_inner]``) is the array."""
        pointer = self.pointer(base)
        if pointer is not None and len(at) == 1:
            offset = at[0] if pointer[1] == Number(0) else make_computed("+", pointer[1], at[0])
            return read(pointer[0], offset)
        return base
