"""Sizes in terms of symbols, as text that is valid in Python and in C++ alike.

A number is a pair of texts, numerator and denominator; integers only, so that both languages compute the same.
``_floor``, ``_cut``, ``_mod``, ``_max`` and ``_min`` are functions of what is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.expr import Expr, Function, Num, Product, Sum, Sym, evaluate, linear

Ratio = tuple[str, int]


def size_text(expr: Expr, symbols: Mapping[str, str]) -> str | None:
    """The value of ``expr``, cut to an integer; None where it cannot be written with integers.

    ``symbols`` maps the name of each symbol to what it is called in the text.
    """
    ratio = _ratio(expr, symbols)
    if ratio is None:
        return None
    return ratio[0] if ratio[1] == 1 else f"_cut({ratio[0]}, {ratio[1]})"


def root_of(expr: Expr) -> tuple[int, int, int, int] | None:
    """Slope and constant of a straight line in one symbol, each as numerator and denominator; None for others."""
    line = linear(expr) if len(expr.symbols) == 1 else None
    if line is None or not line[0].over:
        return None
    slope, constant = line
    return slope.over, slope.under, constant.over, constant.under


def step_of(expr: Expr) -> tuple[int, int] | None:
    """Of a line with integers: how far its values are apart, and the one at 0."""
    if len(expr.symbols) != 1:
        return None
    (symbol,) = expr.symbols
    first, second, third = (evaluate(expr, {symbol: value}) for value in (0, 1, 2))
    if first is None or second is None or third is None or third - second != second - first or second == first:
        return None
    return abs(second - first), first


def _ratio(expr: Expr, symbols: Mapping[str, str]) -> Ratio | None:
    match expr:
        case Num(over=over, under=under):
            return f"({over})" if over < 0 else str(over), under
        case Sym(name=name):
            return (symbols[name], 1) if name in symbols else None
        case Sum() | Product() | Function():
            parts = [_ratio(part, symbols) for part in expr.parts()]
            known = [part for part in parts if part is not None]
            return _joined(expr, known) if len(known) == len(parts) else None
        case _:
            return None


def _joined(expr: Sum | Product | Function, parts: list[Ratio]) -> Ratio | None:
    under = 1
    for _, one in parts:
        under *= one
    match expr:
        case Product():
            return "(" + " * ".join(text for text, _ in parts) + ")", under
        case Sum():
            return "(" + " + ".join(_widened(parts, under)) + ")", under
        case Function(name="max" | "min" as name):
            return f"_{name}({', '.join(_widened(parts, under))})", under
        case Function(name="floor"):
            return f"_floor({parts[0][0]}, {under})", 1
        case Function(name="ceil"):
            return f"(-_floor(-{parts[0][0]}, {under}))", 1
        case Function(name="trunc"):
            return f"_cut({parts[0][0]}, {under})", 1
        case Function(name="floordiv" | "mod" as name):
            over, below = _widened(parts, under)
            if name == "floordiv":
                return f"_floor({over}, {below})", 1
            return f"_mod({over}, {below})", under
        case _:
            return None


def _widened(parts: list[Ratio], under: int) -> list[str]:
    """The numerators over one denominator."""
    return [text if one == under else f"({text} * {under // one})" for text, one in parts]
