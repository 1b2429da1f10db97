"""Symbols shared between inputs: who defines them, what they are called, which dims show them.

The wrapper names a symbol where it first meets it (``int64_t s17 = arg0_1_size[0];``), gives it further names
(``int64_t s77 = s17;``) and solves derived dims for it (``int64_t s40 = (1.0/8.0)*arg0_1_size_0;``). Everything here is
put in terms of the first name, so that two dims with the same expression are the same size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aotidoctor.model.expr import Expr, Num, Opaque, Sym, linear, parse_expr, product_of, substitute, sum_of
from aotidoctor.model.rational import Rational
from aotidoctor.model.record import record
from aotidoctor.readers.contract.body_records import Body

_SIZE = re.compile(r"(\w+)_(size|stride)\[(\d{1,3})\]$")
_LONGEST = 1000
# Symbols of sizes; those of data-dependent sizes (u0) are defined by what a run gives.
_SYMBOL = re.compile(r"(?:s|ps)\d+$")
_ALIAS = re.compile(r"[a-z]+\d+$")


@record
class SymbolTable:
    """Canonical symbols with the text that defines them.

    ``sizes`` and ``strides`` map (input name, dim) to its size in terms of them, as far as the definitions tell.
    """

    definitions: Mapping[str, str]
    aliases: Mapping[str, Expr]
    sizes: Mapping[tuple[str, int], Expr]
    strides: Mapping[tuple[str, int], Expr]

    def read(self, text: str) -> Expr:
        """``text`` in terms of canonical symbols."""
        return substitute(parse_expr(text), self.aliases)


def read_symbols(body: Body) -> SymbolTable:
    """Collect the definitions of ``body``."""
    definitions: dict[str, str] = {}
    aliases: dict[str, Expr] = {}
    places: dict[str, tuple[str, str, int]] = {}
    tables: dict[str, dict[tuple[str, int], Expr]] = {"size": {}, "stride": {}}
    for name, text in body.definitions.items():
        place = _SIZE.match(text)
        if place is not None:
            where = (place[2], place[1], int(place[3]))
            if _ALIAS.match(name) is not None:
                definitions[name] = text
                tables[where[0]].setdefault(where[1:], Sym(name))
            else:
                places[name] = where
        elif _ALIAS.match(text) is not None and (text in definitions or text in aliases):
            aliases[name] = aliases.get(text, Sym(text))
        else:
            if _SYMBOL.match(name) is not None and isinstance(parse_expr(text), Opaque):
                body.losses.note("symbol", 0, f"{name} = {text}")
            _derived(name, text, definitions, aliases, places=places, tables=tables)
    return SymbolTable(definitions=definitions, aliases=aliases, sizes=tables["size"], strides=tables["stride"])


def _derived(
    name: str,
    text: str,
    definitions: dict[str, str],
    aliases: dict[str, Expr],
    *,
    places: Mapping[str, tuple[str, str, int]],
    tables: Mapping[str, dict[tuple[str, int], Expr]],
) -> None:
    """``name`` is computed from one size (``places``): then that size is the inverse; or from other symbols."""
    expr = substitute(parse_expr(text), aliases)
    sources = [symbol for symbol in expr.symbols if symbol in places]
    if not sources:
        if expr.symbols and expr.symbols <= definitions.keys() and len(str(expr)) < _LONGEST:
            aliases[name] = expr
        return
    definitions[name] = text
    kind, argument, dim = places[sources[0]]
    size = inverse(expr, sources[0], Sym(name))
    if size is not None:
        tables[kind].setdefault((argument, dim), size)


def inverse(expr: Expr, symbol: str, value: Expr) -> Expr | None:
    """``symbol`` such that ``expr`` equals ``value``: ``s40 = n/8`` gives ``n = 8*s40``; None unless it is linear."""
    others = expr.symbols - {symbol}
    if others:
        rest = substitute(expr, {symbol: Num(0)})
        return sum_of((value, product_of((Num(-1), rest)))) if _unit_slope(expr, symbol, rest) else None
    line = linear(expr)
    if line is None or not line[0].over:
        return None
    slope = Rational(line[0].under, line[0].over)
    constant = slope.times(line[1]).times(Rational(-1))
    return sum_of((product_of((Num(slope.over, slope.under), value)), Num(constant.over, constant.under)))


def _unit_slope(expr: Expr, symbol: str, rest: Expr) -> bool:
    return sum_of((expr, product_of((Num(-1), rest)))) == Sym(symbol)


def known(expr: Expr) -> Expr | None:
    """``expr`` unless it was not understood."""
    return None if isinstance(expr, Opaque) else expr
