"""Reads one expression of a generated kernel, C++ or Triton, to a ``Value``.

One lane is read for all: a vector is its element, a mask a truth value, and what only moves lanes about (loading,
storing to a temporary array, broadcasting, casting between integers) changes nothing. A function that is not known
gives a value that depends on its arguments and cannot be computed.
"""

from __future__ import annotations

from collections.abc import Callable

from aotidoctor.localize.blame.computed import Computed, Number, Value, Variable, computed, read, untold
from aotidoctor.localize.blame.functions import KNOWN, LOADS, divisor_of, is_type, meaning, temporary
from aotidoctor.localize.blame.tokens import Token, Unreadable, tokenize

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
    """``resolve`` gives the value of a name, ``parameters`` are the names that point to tensors.

    ``on_division`` is told of each divisor and the function that divides.
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
        self._tokens: list[Token] = []
        self._at = 0
        self._depth = 0

    def value(self, text: str) -> Value:
        """The value of an expression. Never raises: what cannot be read is a value that cannot be computed."""
        try:
            self._tokens, self._at, self._depth = tokenize(text), 0, 0
            found = self._ternary()
        except Unreadable:
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
                return inner[0], right if inner[1] == Number(0) else computed("+", inner[1], right)
            case _:
                return None

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _take(self) -> Token:
        if self._at >= len(self._tokens):
            raise Unreadable
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self._at += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise Unreadable

    def _ternary(self) -> Value:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unreadable
        found = self._binary(0)
        if self._accept("?"):
            chosen = self._ternary()
            self._expect(":")
            found = computed("where", found, chosen, self._ternary())
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
            left = computed(_SPELLING.get(sign, sign), left, right)
        return left

    def _unary(self) -> Value:
        sign = self._peek()
        if sign in ("-", "+", "~", "!", "&", "*"):
            self._depth += 1
            if self._depth > _DEEPEST:
                raise Unreadable
            self._at += 1
            inner = self._unary()
            self._depth -= 1
            return _signed(sign, inner)
        return self._postfix()

    def _postfix(self) -> Value:
        found = self._primary()
        while True:
            if self._accept("["):
                found = self._subscript(found)
            elif self._peek() in (".", "::"):
                self._at += 1
                found = self._member(found)
            elif self._peek() == "(":
                # The call of a lambda, or of ``decltype(...)``.
                found = self._called(found, self._arguments())
            else:
                return found

    def _primary(self) -> Value:
        token = self._take()
        if token.kind == "number":
            return Number(int(token.text)) if token.text.isdecimal() and len(token.text) < 20 else untold()
        if token.kind == "text":
            return untold()
        if token.text == "(":
            inner = self._ternary()
            self._expect(")")
            return inner
        if token.text == "[":
            return untold(*self._list("]"))
        if token.kind != "name":
            raise Unreadable
        return self._named(token)

    def _named(self, token: Token) -> Value:
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

    def _member(self, receiver: Value) -> Value:
        name = self._take()
        if name.text == "template":
            name = self._take()
        if name.kind != "name":
            raise Unreadable
        if self._peek() != "(":
            return untold(receiver)
        return self._apply(name, receiver)

    def _subscript(self, base: Value) -> Value:
        """``in_ptr0[...]``; a lane of a temporary array (``tmp1[x1_inner]``) is the array."""
        at = self._list("]")
        pointer = self.pointer(base)
        if pointer is not None and len(at) == 1:
            offset = at[0] if pointer[1] == Number(0) else computed("+", pointer[1], at[0])
            return read(pointer[0], offset)
        return base

    def _apply(self, name: Token, receiver: Value | None) -> Value:
        arguments = self._arguments()
        if name.text in LOADS and arguments:
            pointer = self.pointer(arguments[0])
            return read(*pointer) if pointer is not None else temporary(arguments[0])
        divisor = divisor_of(name.text, arguments)
        if divisor is not None:
            self._on_division(name.text, divisor)
        return meaning(name, receiver, arguments)

    def _called(self, function: Value, arguments: list[Value]) -> Value:
        if function == Variable("decltype"):
            return arguments[0] if len(arguments) == 1 else untold(*arguments)
        return function if not arguments else untold(function, *arguments)

    def _arguments(self) -> list[Value]:
        self._expect("(")
        return self._list(")")

    def _list(self, closing: str) -> list[Value]:
        found: list[Value] = []
        while not self._accept(closing):
            if self._peek() == ":" or self._peek() == "&":
                # A slice of Triton (``[:, None]``), or a lambda: neither is followed here.
                raise Unreadable
            value = self._ternary()
            if self._accept("="):
                self._ternary()
            else:
                found.append(value)
            if not self._accept(",") and self._peek() != closing:
                raise Unreadable
        return found


def _signed(sign: str, inner: Value) -> Value:
    match sign, inner:
        case "-", Number(value=number):
            return Number(-number)
        case "-", _:
            return computed("neg", inner)
        case "~" | "!", _:
            return computed("~", inner)
        case _:
            return inner
