"""Recursive-descent reader of C++ size expressions; ``aotidoctor.model.expr.parse_expr`` is its entrance."""

from __future__ import annotations

import re

from aotidoctor.model.expr_nodes import Expr, Function, Num, Sym, number, product_of, sum_of
from aotidoctor.model.rational import Rational

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d{1,19}(?:\.(?P<fraction>\d{0,9}))?)(?:LL|L|UL|ULL|U|l|f|F)?(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*(?:::\w+)*)(?P<template><[\w:]+>)?|(?P<sign>//|[-+*/%(),{}]))"
)
_CASTS = frozenset(("static_cast", "int64_t", "long", "double"))
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


class Unreadable(Exception):  # noqa: N818 (a control-flow signal, caught by parse_expr)
    """The text is not a size expression that this reader knows."""


class Reader:
    """Reads one expression of at most ``depth`` nested levels."""

    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._token: re.Match[str] | None = None
        self._advance()

    def whole(self) -> Expr:
        """The expression; raises ``Unreadable`` when there is anything before, in or after it that is not known."""
        expr = self._sum()
        if self._token is not None:
            raise Unreadable
        return expr

    def _advance(self) -> None:
        if not self._text[self._at :].strip():
            self._token = None
            return
        token = _TOKEN.match(self._text, self._at)
        if token is None:
            raise Unreadable
        self._token, self._at = token, token.end()

    def _sign(self, *wanted: str) -> str | None:
        """The operator that comes next if it is one of ``wanted``; it is consumed."""
        sign = self._token["sign"] if self._token is not None else None
        if sign is None or sign not in wanted:
            return None
        self._advance()
        return sign

    def _expect(self, sign: str) -> None:
        if self._sign(sign) is None:
            raise Unreadable

    def _sum(self) -> Expr:
        self._depth -= 1
        if self._depth < 0:
            raise Unreadable
        terms = [self._product()]
        while (sign := self._sign("+", "-")) is not None:
            term = self._product()
            terms.append(term if sign == "+" else product_of((Num(-1), term)))
        self._depth += 1
        return terms[0] if len(terms) == 1 else sum_of(tuple(terms))

    def _product(self) -> Expr:
        result = self._factor()
        while (sign := self._sign("*", "/", "//", "%")) is not None:
            other = self._factor()
            match sign:
                case "*":
                    result = product_of((result, other))
                case "%" | "//":
                    result = Function("mod" if sign == "%" else "floordiv", (result, other))
                case _:
                    result = _quotient(result, other)
        return result

    def _factor(self) -> Expr:
        negative = False
        while (sign := self._sign("+", "-")) is not None:
            negative ^= sign == "-"
        atom = self._atom()
        return product_of((Num(-1), atom)) if negative else atom

    def _atom(self) -> Expr:
        token = self._token
        if token is None:
            raise Unreadable
        if self._sign("(") is not None:
            inner = self._sum()
            self._expect(")")
            return inner
        self._advance()
        if token["number"] is not None:
            return _number(token)
        if token["name"] is None:
            raise Unreadable
        return self._named(token["name"], token["template"])

    def _named(self, name: str, template: str | None) -> Expr:
        if self._sign("(") is None:
            if template is not None or "::" in name:
                raise Unreadable
            return Sym(name)
        args = self._arguments()
        if name in _CASTS and len(args) == 1:
            return args[0]
        known = _FUNCTIONS.get(name)
        if known is None or known[1] not in (None, len(args)):
            raise Unreadable
        return Function(known[0], args)

    def _arguments(self) -> tuple[Expr, ...]:
        braces = self._sign("{") is not None
        args = [self._sum()]
        while self._sign(",") is not None:
            args.append(self._sum())
        if braces:
            self._expect("}")
        self._expect(")")
        return tuple(args)


def _number(token: re.Match[str]) -> Num:
    text, fraction = token["number"], token["fraction"] or ""
    return number(Rational(int(text.partition(".")[0] + fraction), 10 ** len(fraction)))


def _quotient(over: Expr, under: Expr) -> Expr:
    if isinstance(under, Num) and under.over:
        return product_of((number(Rational(under.under, under.over)), over))
    return Function("div", (over, under))
