"""Normalise, evaluate and solve symbolic sizes.

The generated code holds sizes as C++ text: ``8L*s39``, ``s1 + s2``, ``(1.0/2.0)*arg3_1_size_0``,
``c10::div_floor_integer(static_cast<int64_t>(s0), static_cast<int64_t>(2L))``. ``kernels.expressions.parse_expr`` reads
that text, ``evaluate`` computes it for given symbols and ``solve`` solves it for one symbol.
``str()`` gives the normalised form (``8*s39``, ``s77 + 1``); normalising twice changes nothing. Text that the reader
does not know becomes ``Opaque``: it keeps its text and evaluates to None.

Fractions are exact. The standard library's ``fractions`` would do, but importing it costs as much time as reading a
whole wrapper.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from math import gcd

from aotidoctor.model.record import record


# Nodes, and the functions that build them in normal form.
class _ExprNode:
    """Base of all nodes: the symbols below them and their normalised text."""

    __slots__ = ()

    @property
    def symbols(self) -> frozenset[str]:
        """Names of all symbols below this node; empty below an ``Opaque``."""
        return frozenset().union(*(part.symbols for part in self.parts()))

    def parts(self) -> tuple[Expr, ...]:
        """The nodes directly below this one."""
        return ()


@record(kw_only=False)
class Num(_ExprNode):
    """A number ``over``/``under`` in lowest terms, ``under`` positive: 1 for integers. Others are made by ``ratio``."""

    over: int
    under: int = 1

    def __str__(self) -> str:
        """Normalised text."""
        return str(self.over) if self.under == 1 else f"{self.over}/{self.under}"

    def __lt__(self, other: Num) -> bool:
        """Whether the value is smaller."""
        return self.over * other.under < other.over * self.under

    def plus(self, other: Num) -> Num:
        """The sum."""
        return ratio(self.over * other.under + other.over * self.under, self.under * other.under)

    def times(self, other: Num) -> Num:
        """The product."""
        return ratio(self.over * other.over, self.under * other.under)

    def over_by(self, other: Num) -> Num | None:
        """The quotient; None for a division by zero."""
        return ratio(self.over * other.under, self.under * other.over) if other.over else None

    def floor(self) -> int:
        """The next integer below or equal."""
        return self.over // self.under

    def ceil(self) -> int:
        """The next integer above or equal."""
        return -(-self.over // self.under)

    def truncated(self) -> int:
        """The integer part, as a C++ conversion to ``int64_t`` gives it."""
        return self.floor() if self.over >= 0 else self.ceil()


@record(kw_only=False)
class Sym(_ExprNode):
    """A symbol: ``s77``, ``u0`` or a local of the wrapper such as ``arg3_1_size_0``."""

    name: str

    @property
    def symbols(self) -> frozenset[str]:
        """The symbol itself."""
        return frozenset((self.name,))

    def __str__(self) -> str:
        """Normalised text."""
        return self.name


@record(kw_only=False)
class Sum(_ExprNode):
    """At least two terms; a number comes last."""

    terms: tuple[Expr, ...]

    def parts(self) -> tuple[Expr, ...]:
        """The terms."""
        return self.terms

    def __str__(self) -> str:
        """Normalised text."""
        text = str(self.terms[0])
        for term in self.terms[1:]:
            plain = str(term)
            text += f" - {plain[1:]}" if plain.startswith("-") else f" + {plain}"
        return text


@record(kw_only=False)
class Product(_ExprNode):
    """At least two factors; a number comes first."""

    factors: tuple[Expr, ...]

    def parts(self) -> tuple[Expr, ...]:
        """The factors."""
        return self.factors

    def __str__(self) -> str:
        """Normalised text."""
        first, rest = self.factors[0], self.factors[1:]
        if isinstance(first, Num) and (first.over, first.under) == (-1, 1):
            return "-" + "*".join(_tight(part) for part in rest)
        if isinstance(first, Num) and first.over == 1:
            return "*".join(_tight(part) for part in rest) + f"/{first.under}"
        return "*".join(_tight(part) for part in self.factors)


@record(kw_only=False)
class ExprFunction(_ExprNode):
    """``floordiv``, ``mod``, ``div`` (real division), ``floor``, ``ceil``, ``trunc``, ``max`` or ``min``."""

    name: str
    args: tuple[Expr, ...]

    def parts(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args

    def __str__(self) -> str:
        """Normalised text."""
        sign = {"floordiv": "//", "mod": "%", "div": "/"}.get(self.name)
        if sign is not None:
            return f"({_tight(self.args[0])}{sign}{_tight(self.args[1])})"
        return f"{self.name}({', '.join(map(str, self.args))})"


@record(kw_only=False)
class Opaque(_ExprNode):
    """Text that was not understood."""

    text: str

    def __str__(self) -> str:
        """Normalised text."""
        return self.text


Expr = Num | Sym | Sum | Product | ExprFunction | Opaque


def _tight(part: Expr) -> str:
    """The text of a factor, in parentheses where it would bind less tightly than ``*``."""
    text = str(part)
    fraction = isinstance(part, Num) and part.under != 1
    quotient = isinstance(part, Product) and isinstance(part.factors[0], Num)
    return f"({text})" if isinstance(part, Sum | Opaque) or fraction or quotient or text.startswith("-") else text


def ratio(over: int, under: int) -> Num:
    """``over``/``under`` in lowest terms; ``under`` must not be 0."""
    if under == 1:
        return Num(over)
    common = gcd(over, under) * (-1 if under < 0 else 1)
    return Num(over // common, under // common)


def sum_of(terms: tuple[Expr, ...]) -> Expr:
    """``terms`` added up: nested sums are flattened, numbers are folded, like symbols are collected."""
    constant, order = Num(0), dict[Expr, Num]()
    for term in _flat(terms, Sum):
        factor, rest = _split(term)
        if rest is None:
            constant = constant.plus(factor)
        else:
            order[rest] = order.get(rest, Num(0)).plus(factor)
    scaled = [_scaled(factor, rest) for rest, factor in order.items() if factor.over]
    if constant.over or not scaled:
        scaled.append(constant)
    return scaled[0] if len(scaled) == 1 else Sum(tuple(scaled))


def product_of(factors: tuple[Expr, ...]) -> Expr:
    """``factors`` multiplied: nested products are flattened, numbers are folded into one in front."""
    constant, rest = Num(1), list[Expr]()
    for factor in _flat(factors, Product):
        if isinstance(factor, Num):
            constant = constant.times(factor)
        else:
            rest.append(factor)
    if not rest or not constant.over:
        return constant
    if len(rest) == 1 and isinstance(rest[0], Sum):
        return sum_of(tuple(product_of((constant, term)) for term in rest[0].terms))
    return _scaled(constant, rest[0] if len(rest) == 1 else Product(tuple(rest)))


def _flat(parts: tuple[Expr, ...], kind: type[Sum | Product]) -> list[Expr]:
    return [inner for part in parts for inner in (part.parts() if isinstance(part, kind) else (part,))]


def _split(term: Expr) -> tuple[Num, Expr | None]:
    """``(number, rest)`` of a term; the rest is None when the term is a number."""
    if isinstance(term, Num):
        return term, None
    if isinstance(term, Product) and isinstance(term.factors[0], Num):
        rest = term.factors[1:]
        return term.factors[0], rest[0] if len(rest) == 1 else Product(rest)
    return Num(1), term


def _scaled(factor: Num, rest: Expr) -> Expr:
    if factor == Num(1):
        return rest
    inner = rest.factors if isinstance(rest, Product) else (rest,)
    return Product((factor, *inner))


# Evaluating, solving.
def substitute(expr: Expr, replacements: Mapping[str, Expr]) -> Expr:
    """``expr`` with symbols replaced, normalised again."""
    match expr:
        case Sym(name=name):
            return replacements.get(name, expr)
        case Sum(terms=terms):
            return sum_of(tuple(substitute(term, replacements) for term in terms))
        case Product(factors=factors):
            return product_of(tuple(substitute(factor, replacements) for factor in factors))
        case ExprFunction(name=name, args=args):
            return ExprFunction(name, tuple(substitute(arg, replacements) for arg in args))
        case _:
            return expr


def whole(expr: Expr | None) -> int | None:
    """The number that it is, if it is a whole one."""
    return expr.over if isinstance(expr, Num) and expr.under == 1 else None


def evaluate(expr: Expr, env: Mapping[str, int]) -> int | None:
    """The value as the compiled code computes it (a fraction is cut towards zero); None when a symbol is missing."""
    value = _value(expr, env)
    return None if value is None else value.truncated()


def _value(expr: Expr, env: Mapping[str, int]) -> Num | None:
    match expr:
        case Num():
            return expr
        case Sym(name=name):
            return Num(env[name]) if name in env else None
        case Sum() | Product() | ExprFunction():
            values = [_value(part, env) for part in expr.parts()]
            known = [value for value in values if value is not None]
            if len(known) != len(values):
                return None
            match expr:
                case Sum():
                    return reduce(Num.plus, known)
                case Product():
                    return reduce(Num.times, known)
                case ExprFunction(name=name):
                    return _apply(name, known)
    return None


def _apply(name: str, values: list[Num]) -> Num | None:
    match name:
        case "max" | "min":
            return sorted(values)[0 if name == "min" else -1]
        case "floor":
            return Num(values[0].floor())
        case "ceil":
            return Num(values[0].ceil())
        case "trunc":
            return Num(values[0].truncated())
        case _:
            quotient = values[0].over_by(values[1])
            if quotient is None or name == "div":
                return quotient
            if name == "floordiv":
                return Num(quotient.floor())
            # C++ takes the sign of the dividend.
            return values[0].plus(values[1].times(Num(-quotient.truncated())))


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
    root = Num(value).plus(constant.times(Num(-1))).over_by(slope)
    return None if root is None or root.under != 1 else (next(iter(names)), root.over)


def linear(expr: Expr) -> tuple[Num, Num] | None:
    """``(slope, constant)`` of an expression in one symbol; None when it is not a straight line."""
    match expr:
        case Num():
            return Num(0), expr
        case Sym():
            return Num(1), Num(0)
        case Sum(terms=terms):
            slope, constant = Num(0), Num(0)
            for term in terms:
                line = linear(term)
                if line is None:
                    return None
                slope, constant = slope.plus(line[0]), constant.plus(line[1])
            return slope, constant
        case Product(factors=(Num() as scale, rest)):
            line = linear(rest)
            return None if line is None else (line[0].times(scale), line[1].times(scale))
        case _:
            return None


def step_of(expr: Expr) -> tuple[int, int] | None:
    """Step and value at 0 of a straight line in one symbol with integer values; None for others."""
    if len(expr.symbols) != 1:
        return None
    (symbol,) = expr.symbols
    first, second, third = (evaluate(expr, {symbol: value}) for value in (0, 1, 2))
    if first is None or second is None or third is None or third - second != second - first or second == first:
        return None
    return abs(second - first), first
