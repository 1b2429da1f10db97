"""Parse one expression of a generated kernel, C++ or Triton, into a ``Value``.

One lane is read for all: a vector is its element, a mask a truth value, and what only moves lanes about (loading,
storing to a temporary array, broadcasting, casting between integers) changes nothing. An unknown function gives a value
that depends on its arguments and cannot be computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aotidoctor.localize.blame.value_trees import Computed, Number, Value, Variable, make_computed, read, unknown_value

# Tokens.
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:e[-+]?\d+)?)(?:LL|L|ULL|UL|U|f)?(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*)(?:<(?P<types>[\w:, ]*(?:<[\w:, ]*>(?:\(\d+L?\))?[\w:, ]*)*)>(?=\(|::))?"
    r"|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<sign>::|<=|>=|==|!=|&&|\|\||//|[-+*/%<>&|^~!?:()\[\]{},.=]))"
)
LONGEST, _LONGEST_LINE = 8000, 4000


class UnreadableExpressionError(Exception):
    """The text is no expression of the kind that the generator writes."""


@dataclass(frozen=True, slots=True)
class KernelToken:
    """A token: ``kind`` is ``number``, ``name``, ``text`` or ``sign``; ``types`` are a name's template arguments."""

    kind: str
    text: str
    types: str | None = None


def tokenize(text: str) -> list[KernelToken]:
    """The words of ``text``. Raises ``UnreadableExpressionError``."""
    if len(text) > LONGEST:
        raise UnreadableExpressionError
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise UnreadableExpressionError
        kind = found.lastgroup if found.lastgroup != "types" else "name"
        tokens.append(KernelToken(kind or "", found[kind or 0], found["types"]))
        at = found.end()
    return tokens


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


def meaning(name: KernelToken, receiver: Value | None, arguments: Sequence[Value]) -> Value:
    """The value of ``name(arguments)`` or ``receiver.name(arguments)``."""
    function = name.text
    if function == "blendv" and len(arguments) == 3:
        return make_computed("where", arguments[2], arguments[1], arguments[0])
    if function in ("neg", "abs") and (receiver is not None or arguments):
        return make_computed(function, receiver if receiver is not None and not arguments else arguments[0])
    if function in ("static_cast", "convert", "to") or is_type(function):
        # Casts between integers of 32 and 64 bits keep what an index can be; others are not followed.
        inner = receiver if receiver is not None else arguments[0] if arguments else unknown_value()
        if is_type(name.text):
            return inner
        types = (name.types or "").split(",")
        if name.text == "to" and name.types is None:
            types = [one.name for one in arguments if isinstance(one, Variable)]
        # ``convert<int64_t,2,int32_t,1>`` names the target first, and the source behind it.
        # A type may be unsigned for one sum, difference or product, whose overflow would be undefined otherwise.
        words = [word.strip() for word in types if not word.strip().isdecimal()]
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
_DEEPEST = 60
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "//", "%"),
)
_SPELLING = {"||": "or", "&&": "and", "//": "floordiv"}


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
        self._tokens: list[KernelToken] = []
        self._at = 0
        self._depth = 0

    def value(self, text: str) -> Value:
        """The value of an expression. Never raises: what cannot be read is a value that cannot be computed."""
        try:
            self._tokens, self._at, self._depth = tokenize(text), 0, 0
            found = self._ternary()
        except UnreadableExpressionError:
            return Variable("unreadable")
        return found if self._at == len(self._tokens) else Variable("unreadable")

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

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _take(self) -> KernelToken:
        if self._at >= len(self._tokens):
            raise UnreadableExpressionError
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self._at += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise UnreadableExpressionError

    def _ternary(self) -> Value:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UnreadableExpressionError
        found = self._binary(0)
        if self._accept("?"):
            chosen = self._ternary()
            self._expect(":")
            found = make_computed("where", found, chosen, self._ternary())
        self._depth -= 1
        return found

    def _binary(self, level: int) -> Value:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self._peek() in _LEVELS[level]:
            sign = self._take().text
            right = self._binary(level + 1)
            if sign in ("/", "%"):
                self._on_division(sign, right)
            left = make_computed(_SPELLING.get(sign, sign), left, right)
        return left

    def _unary(self) -> Value:
        sign = self._peek()
        if sign in ("-", "+", "~", "!", "&", "*"):
            self._depth += 1
            if self._depth > _DEEPEST:
                raise UnreadableExpressionError
            self._at += 1
            inner = self._unary()
            self._depth -= 1
            match sign, inner:
                case "-", Number(value=number):
                    return Number(-number)
                case "-", _:
                    return make_computed("neg", inner)
                case "~" | "!", _:
                    return make_computed("~", inner)
                case _:
                    return inner
        return self._postfix()

    def _postfix(self) -> Value:
        found = self._primary()
        while True:
            if self._accept("["):
                found = self._subscript(found)
            elif self._peek() in (".", "::"):
                self._at += 1
                name = self._take()
                name = self._take() if name.text == "template" else name
                if name.kind != "name":
                    raise UnreadableExpressionError
                found = self._apply(name, found) if self._peek() == "(" else unknown_value(found)
            elif self._peek() == "(":
                # The call of a lambda, or of ``decltype(...)``.
                arguments = self._arguments()
                if found == Variable("decltype"):
                    found = arguments[0] if len(arguments) == 1 else unknown_value(*arguments)
                elif arguments:
                    found = unknown_value(found, *arguments)
            else:
                return found

    def _primary(self) -> Value:
        token = self._take()
        if token.kind == "number":
            return Number(int(token.text)) if token.text.isdecimal() and len(token.text) < 20 else unknown_value()
        if token.kind == "text":
            return unknown_value()
        if token.text == "(":
            inner = self._ternary()
            self._expect(")")
            return inner
        if token.text == "[":
            return unknown_value(*self._list("]"))
        if token.kind != "name":
            raise UnreadableExpressionError
        return self._named(token)

    def _named(self, token: KernelToken) -> Value:
        """A name, with its qualifiers: ``tmp3``, ``at::vec::VectorizedN<int64_t,2>::loadu(...)``, ``tl.load(...)``."""
        names = [token]
        while self._peek() == "::" or (self._peek() == "." and token.text in ("tl", "triton_helpers", "tl_math")):
            self._at += 1
            names.append(self._take())
        last = names[-1]
        if self._peek() != "(":
            if len(names) > 1:
                return Variable(".".join(one.text for one in names))
            return Variable(last.text) if last.text in self._parameters else self._resolve(last.text)
        if last.text == "decltype":
            self._arguments()
            return Variable("decltype")
        if len(names) == 1 and last.types is None and last.text not in KNOWN and not is_type(last.text):
            known = self._resolve(last.text)
            if known != Variable(last.text):
                self._arguments()
                return known
        return self._apply(last, None)

    def _subscript(self, base: Value) -> Value:
        """``in_ptr0[...]``; a lane of a temporary array (``tmp1[x1_inner]``) is the array."""
        at = self._list("]")
        pointer = self.pointer(base)
        if pointer is not None and len(at) == 1:
            offset = at[0] if pointer[1] == Number(0) else make_computed("+", pointer[1], at[0])
            return read(pointer[0], offset)
        return base

    def _apply(self, name: KernelToken, receiver: Value | None) -> Value:
        arguments = self._arguments()
        if name.text in LOADS and arguments:
            pointer = self.pointer(arguments[0])
            return read(*pointer) if pointer is not None else temporary(arguments[0])
        divisor = divisor_of(name.text, arguments)
        if divisor is not None:
            self._on_division(name.text, divisor)
        return meaning(name, receiver, arguments)

    def _arguments(self) -> list[Value]:
        self._expect("(")
        return self._list(")")

    def _list(self, closing: str) -> list[Value]:
        found: list[Value] = []
        while not self._accept(closing):
            if self._peek() == ":" or self._peek() == "&":
                # A slice of Triton (``[:, None]``), or a lambda: neither is followed here.
                raise UnreadableExpressionError
            value = self._ternary()
            if self._accept("="):
                self._ternary()
            else:
                found.append(value)
            if not self._accept(",") and self._peek() != closing:
                raise UnreadableExpressionError
        return found
