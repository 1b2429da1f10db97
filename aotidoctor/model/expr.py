"""Symbolic sizes as the wrapper writes them, parsed to a small frozen tree.

The generated code holds sizes as C++ text: ``8L*s39``, ``s1 + s2``, ``(1.0/2.0)*arg3_1_size_0``,
``c10::div_floor_integer(static_cast<int64_t>(s0), static_cast<int64_t>(2L))``. ``parse_expr`` reads that text (nothing
is evaluated by Python itself), ``evaluate`` computes it for given symbols and ``solve`` turns it round for one symbol.
``str()`` gives the normalised form (``8*s39``, ``s77 + 1``); normalising twice changes nothing. What the reader does
not know becomes ``Opaque``: it keeps its text and evaluates to None.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from aotidoctor.model.expr_nodes import Expr, Function, Num, Opaque, Product, Sum, Sym, product_of, sum_of
from aotidoctor.model.expr_reader import Reader, Unreadable
from aotidoctor.model.rational import Rational

__all__ = [
    "Expr",
    "Function",
    "Num",
    "Opaque",
    "Product",
    "Sum",
    "Sym",
    "evaluate",
    "linear",
    "parse_expr",
    "product_of",
    "solve",
    "substitute",
    "sum_of",
]

_LONGEST = 4000
_DEEPEST = 60


def parse_expr(text: str) -> Expr:
    """Parse one C++ size expression. Never raises: what it cannot read becomes ``Opaque``."""
    stripped = text.strip()
    if not stripped or len(stripped) > _LONGEST:
        return Opaque(stripped)
    try:
        return Reader(stripped, _DEEPEST).whole()
    except Unreadable:
        return Opaque(stripped)


def substitute(expr: Expr, replacements: Mapping[str, Expr]) -> Expr:
    """``expr`` with symbols replaced, normalised again."""
    match expr:
        case Sym(name=name):
            return replacements.get(name, expr)
        case Sum(terms=terms):
            return sum_of(tuple(substitute(term, replacements) for term in terms))
        case Product(factors=factors):
            return product_of(tuple(substitute(factor, replacements) for factor in factors))
        case Function(name=name, args=args):
            return Function(name, tuple(substitute(arg, replacements) for arg in args))
        case _:
            return expr


def evaluate(expr: Expr, env: Mapping[str, int]) -> int | None:
    """The value as the compiled code computes it (a fraction is cut towards zero); None when a symbol is missing."""
    value = _value(expr, env)
    return None if value is None else value.truncated()


def _value(expr: Expr, env: Mapping[str, int]) -> Rational | None:
    match expr:
        case Num(over=over, under=under):
            return Rational(over, under)
        case Sym(name=name):
            return Rational(env[name]) if name in env else None
        case Sum() | Product() | Function():
            values = [_value(part, env) for part in expr.parts()]
            known = [value for value in values if value is not None]
            return _combine(expr, known) if len(known) == len(values) else None
        case _:
            return None


def _combine(expr: Sum | Product | Function, values: list[Rational]) -> Rational | None:
    match expr:
        case Sum():
            return reduce(Rational.plus, values)
        case Product():
            return reduce(Rational.times, values)
        case Function(name=name):
            return _apply(name, values)


def _apply(name: str, values: list[Rational]) -> Rational | None:
    match name:
        case "max" | "min":
            return sorted(values)[0 if name == "min" else -1]
        case "floor":
            return Rational(values[0].floor())
        case "ceil":
            return Rational(values[0].ceil())
        case "trunc":
            return Rational(values[0].truncated())
        case _:
            quotient = values[0].over_by(values[1])
            if quotient is None or name == "div":
                return quotient
            if name == "floordiv":
                return Rational(quotient.floor())
            # C++ takes the sign of the dividend.
            return values[0].plus(values[1].times(Rational(-quotient.truncated())))


def solve(expr: Expr, value: int) -> tuple[str, int] | None:
    """``(symbol, its value)`` that makes ``expr`` equal ``value``.

    None unless ``expr`` is linear in exactly one symbol and the solution is an integer: ``solve(8*s39, 30)`` is None.
    """
    names = expr.symbols
    if len(names) != 1:
        return None
    line = linear(expr)
    if line is None or not line[0].over:
        return None
    slope, constant = line
    root = Rational(value).plus(constant.times(Rational(-1))).over_by(slope)
    return None if root is None or root.under != 1 else (next(iter(names)), root.over)


def linear(expr: Expr) -> tuple[Rational, Rational] | None:
    """``(slope, constant)`` of an expression in one symbol; None when it is not a straight line."""
    match expr:
        case Num(over=over, under=under):
            return Rational(0), Rational(over, under)
        case Sym():
            return Rational(1), Rational(0)
        case Sum(terms=terms):
            slope, constant = Rational(0), Rational(0)
            for term in terms:
                line = linear(term)
                if line is None:
                    return None
                slope, constant = slope.plus(line[0]), constant.plus(line[1])
            return slope, constant
        case Product(factors=(Num(over=over, under=under), rest)):
            line = linear(rest)
            scale = Rational(over, under)
            return None if line is None else (line[0].times(scale), line[1].times(scale))
        case _:
            return None
