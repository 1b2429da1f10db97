"""Parse one expression of generated code: sizes and grids of the wrapper, and what kernels compute, C++ or Triton.

There is one grammar, ``syntax_of``. What is made of its tree is up to the reader: a size in normal form
(``parse_expr``), what a lane of a kernel computes, or a number. Nothing is evaluated by Python itself.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from aotidoctor.model.expr import Expr, ExprFunction, Num, Opaque, Sym, evaluate, product_of, ratio, sum_of

# Tokens.
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?:[uU]?[lL]{1,2}|[uUfF])?(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*)(?:<(?P<types>[\w:, ]*(?:<[\w:, ]*>(?:\(\d+L?\))?[\w:, ]*)*)>(?=\(|::))?"
    r"|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<sign>::|<=|>=|==|!=|&&|\|\||//|[-+*/%<>&|^~!?:()\[\]{},.=]))"
)
LONGEST = 8000
_DEEPEST = 60
# Operators of C++ by how tightly they bind; ``//`` is Triton's.
_LEVELS = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7, "+": 8, "-": 8,
    "*": 9, "/": 9, "//": 9, "%": 9,
}  # fmt: skip
_UNARY = ("-", "+", "~", "!", "&", "*")
# Names before a dot that are modules, not values.
_MODULES = ("tl", "triton_helpers", "tl_math")


class UnreadableExpressionError(Exception):
    """The text is no expression of the kind that the generator writes; or one that has no meaning for the reader."""


class Syntax(NamedTuple):
    """An expression.

    ``kind`` is ``number``, ``text``, ``name``, ``unary``, ``chain`` (operators that bind alike; ``more`` has their
    signs), ``choose`` (``a ? b : c``), ``list``, ``call`` (``text`` is the name, ``more`` has its template arguments),
    ``method`` (a call whose receiver is the first part), ``apply`` (a call of the first part), ``member`` or
    ``subscript``.
    """

    kind: str
    text: str
    parts: tuple[Syntax, ...] = ()
    more: tuple[str, ...] = ()


def syntax_of(text: str) -> Syntax:
    """The tree of ``text``, of bounded depth. Raises ``UnreadableExpressionError``."""
    return _Parser(text).tree


# ``number``, ``name``, ``text`` or ``sign``; the text itself; a name's template arguments.
_Token = tuple[str, str, tuple[str, ...]]


def _tokens(text: str) -> Iterator[_Token]:
    end = len(text.rstrip())
    if end > LONGEST:
        raise UnreadableExpressionError(f"an expression of {end} characters")
    at = 0
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise UnreadableExpressionError(text[:200])
        number, name, types, quoted, sign = found.groups()
        if sign is not None:
            yield ("sign", sign, ())
        elif name is not None:
            yield ("name", name, () if types is None else (types,))
        else:
            yield ("text", quoted, ()) if number is None else ("number", number, ())
        at = found.end()
    yield ("end", "", ())


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = self._depth = 0
        self.tree = self._whole()
        self._take("end")

    def _peek(self) -> str:
        return self._tokens[self._at][1]

    def _take(self, kind: str) -> _Token:
        token = self._tokens[self._at]
        if token[0] != kind:
            raise UnreadableExpressionError(token[1])
        self._at += 1
        return token

    def _accept(self, sign: str) -> bool:
        if self._tokens[self._at][1] != sign:
            return False
        self._at += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise UnreadableExpressionError(self._peek())

    def _enter(self, levels: int = 1) -> None:
        self._depth += levels
        if self._depth > _DEEPEST:
            raise UnreadableExpressionError("it is nested too deep")

    def _whole(self) -> Syntax:
        self._enter()
        found = self._operand(1)
        if self._accept("?"):
            chosen = self._whole()
            self._expect(":")
            found = Syntax("choose", "?", (found, chosen, self._whole()))
        self._depth -= 1
        return found

    def _operand(self, least: int) -> Syntax:
        """What operators that bind at least as tightly as ``least`` hold together."""
        found = self._unary()
        while (level := _LEVELS.get(self._peek(), 0)) >= least:
            parts, signs = [found], list[str]()
            while _LEVELS.get(sign := self._peek()) == level:
                self._at += 1
                signs.append(sign)
                parts.append(self._operand(level + 1))
            found = Syntax("chain", signs[0], tuple(parts), tuple(signs))
        return found

    def _unary(self) -> Syntax:
        sign = self._peek()
        if sign not in _UNARY:
            return self._postfix()
        self._enter()
        self._at += 1
        inner = self._unary()
        self._depth -= 1
        return Syntax("unary", sign, (inner,))

    def _postfix(self) -> Syntax:
        found = self._primary()
        before = self._depth
        while (sign := self._peek()) in ("[", ".", "::", "("):
            self._enter()
            self._at += 1
            if sign == "[":
                found = Syntax("subscript", sign, (found, *self._list("]")))
            elif sign == "(":
                found = Syntax("apply", sign, (found, *self._list(")")))
            else:
                self._accept("template")
                _, name, types = self._take("name")
                method = ("method", self._list(")")) if self._accept("(") else ("member", ())
                found = Syntax(method[0], name, (found, *method[1]), types)
        self._depth = before
        return found

    def _primary(self) -> Syntax:
        kind, text, types = self._tokens[self._at]
        self._at += 1
        if kind in ("number", "text"):
            return Syntax(kind, text)
        if kind == "name":
            module = text in _MODULES
            while (sign := self._peek()) == "::" or (module and sign == "."):
                self._at += 1
                _, name, types = self._take("name")
                text += sign + name
            return Syntax("call", text, self._list(")"), types) if self._accept("(") else Syntax(kind, text)
        if text == "[":
            return Syntax("list", text, self._list("]"))
        if text != "(":
            raise UnreadableExpressionError(text)
        inner = self._whole()
        self._expect(")")
        return inner

    def _list(self, closing: str) -> tuple[Syntax, ...]:
        """The values up to ``closing``: also those of ``f({x, y})``. What has a keyword is left out."""
        if closing == ")" and self._accept("{"):
            found = list(self._list("}"))
            self._expect(")")
            return tuple(found)
        found = []
        while not self._accept(closing):
            if self._peek() in (":", "&"):
                # A slice of Triton (``[:, None]``), or a lambda: neither is followed.
                raise UnreadableExpressionError(self._peek())
            value = self._whole()
            if self._accept("="):
                self._whole()
            else:
                found.append(value)
            if not self._accept(",") and self._peek() != closing:
                raise UnreadableExpressionError(self._peek())
        return tuple(found)


# Arithmetic of whole numbers.
def _divide(left: int, right: int) -> int | None:
    """Divide as C++ does, towards zero."""
    return None if right == 0 else abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


# Operations of whole numbers, as C++ computes them; None for a division by zero.
OPERATIONS: Mapping[str, Callable[[int, int], int | None]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": lambda left, right: left - right * (_divide(left, right) or 0) if right else None,
    "//": lambda left, right: left // right if right else None,
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
    "&&": lambda left, right: int(bool(left) and bool(right)),
    "||": lambda left, right: int(bool(left) or bool(right)),
}
_COMPARISON = re.compile(r" (<=|>=|==|!=|<|>) ")


def broken_comparisons(text: str, values: Mapping[str, int]) -> list[tuple[int, str, int]]:
    """The parts of ``0 <= u0 < s17`` that do not hold for these values."""
    parts = _COMPARISON.split(text)
    numbers = [evaluate(parse_expr(part), values) for part in parts[::2]]
    return [
        (left, sign, right)
        for left, sign, right in zip(numbers, parts[1::2], numbers[1:], strict=False)
        if left is not None and right is not None and not OPERATIONS[sign](left, right)
    ]


# Loops of C++.
_FOR = re.compile(
    r"for\s*\((?:int64_t|long|int|auto) (\w+) *= *([^;\s][^;]*); *\1 *<([^;]+); *"
    r"(?:\1 *\+= *([^;]*)|\1\+\+|\+\+\1)\) *\{?$"
)


def loop_header(line: str) -> tuple[str, str, str, str] | None:
    """``(variable, start, end, step)`` of the loop that ``line`` opens; None where it is none that runs upwards."""
    found = _FOR.match(line)
    return None if found is None else (found[1], found[2], found[3], found[4] or "1")


# Sizes in normal form.
CASTS = frozenset(("static_cast", "int64_t", "long", "double"))
_FUNCTIONS = {
    "c10::div_floor_integer": ("floordiv", 2),
    "c10::div_floor_floating": ("floordiv", 2),
    "c10::div_mod": ("mod", 2),
    "std::floor": ("floor", 1),
    "std::ceil": ("ceil", 1),
    "std::trunc": ("trunc", 1),
    "floor": ("floor", 1),
    "ceil": ("ceil", 1),
    "trunc": ("trunc", 1),
    "std::max": ("max", None),
    "std::min": ("min", None),
    "max": ("max", None),
    "min": ("min", None),
}
_LONGEST_SIZE = 4000


def _size(node: Syntax) -> Expr:
    kind, text, parts, signs = node
    if kind == "name" and text.isidentifier():
        return Sym(text)
    if kind == "number":
        whole, _, fraction = text.partition(".")
        if len(whole) < 20 and len(fraction) < 10 and (whole + fraction).isdecimal():
            return ratio(int(whole + fraction), 10 ** len(fraction))
    if kind not in ("chain", "unary", "call"):
        raise UnreadableExpressionError(text)
    given = tuple(map(_size, parts))
    if kind == "chain":
        return _chain(given, signs)
    if kind == "unary" and text in "+-":
        return given[0] if text == "+" else product_of((Num(-1), *given))
    if text in CASTS and len(given) == 1:
        return given[0]
    known = _FUNCTIONS.get(text)
    if known is None or not given or known[1] not in (None, len(given)):
        raise UnreadableExpressionError(text)
    return ExprFunction(known[0], given)


def _chain(given: tuple[Expr, ...], signs: tuple[str, ...]) -> Expr:
    found, pairs = given[0], tuple(zip(signs, given[1:], strict=True))
    if signs[0] in "+-":
        return sum_of((found, *(one if sign == "+" else product_of((Num(-1), one)) for sign, one in pairs)))
    for sign, other in pairs:
        match sign:
            case "*":
                found = product_of((found, other))
            case "/" if isinstance(other, Num) and other.over:
                found = product_of((ratio(other.under, other.over), found))
            case "/" | "//" | "%":
                found = ExprFunction({"/": "div", "//": "floordiv", "%": "mod"}[sign], (found, other))
            case _:
                raise UnreadableExpressionError(sign)
    return found


def parse_expr(text: str) -> Expr:
    """Parse one C++ size expression. Never raises: what it cannot read becomes ``Opaque``."""
    stripped = text.strip()
    if stripped.isidentifier():
        return Sym(stripped)
    if not stripped or len(stripped) > _LONGEST_SIZE:
        return Opaque(stripped)
    try:
        return _size(syntax_of(stripped))
    except UnreadableExpressionError:
        return Opaque(stripped)
