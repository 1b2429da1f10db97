"""The nodes of symbolic sizes and the functions that build them in normal form (see ``aotidoctor.model.expr``)."""

from __future__ import annotations

from aotidoctor.model.rational import Rational
from aotidoctor.model.record import record


class _Node:
    """What all nodes share: the symbols below them and their normalised text."""

    __slots__ = ()

    @property
    def symbols(self) -> frozenset[str]:
        """Names of all symbols below this node; empty below an ``Opaque``."""
        return frozenset().union(*(part.symbols for part in self.parts()))

    def parts(self) -> tuple[Expr, ...]:
        """The nodes directly below this one."""
        return ()


@record(kw_only=False)
class Num(_Node):
    """A number ``over``/``under`` in lowest terms; ``under`` is 1 for integers."""

    over: int
    under: int = 1

    def __str__(self) -> str:
        """Normalised text."""
        return str(self.over) if self.under == 1 else f"{self.over}/{self.under}"


@record(kw_only=False)
class Sym(_Node):
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
class Sum(_Node):
    """At least two terms; a number comes last."""

    terms: tuple[Expr, ...]

    def parts(self) -> tuple[Expr, ...]:
        """The terms."""
        return self.terms

    def __str__(self) -> str:
        """Normalised text."""
        text = str(self.terms[0])
        for term in self.terms[1:]:
            shown = str(term)
            text += f" - {shown[1:]}" if shown.startswith("-") else f" + {shown}"
        return text


@record(kw_only=False)
class Product(_Node):
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
class Function(_Node):
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
class Opaque(_Node):
    """Text that was not understood."""

    text: str

    def __str__(self) -> str:
        """Normalised text."""
        return self.text


Expr = Num | Sym | Sum | Product | Function | Opaque


def _tight(part: Expr) -> str:
    """The text of a factor, in parentheses where it would bind less tightly than ``*``."""
    shown = str(part)
    fraction = isinstance(part, Num) and part.under != 1
    quotient = isinstance(part, Product) and isinstance(part.factors[0], Num)
    return f"({shown})" if isinstance(part, Sum | Opaque) or fraction or quotient or shown.startswith("-") else shown


def number(value: Rational) -> Num:
    """The node of an exact number."""
    return Num(value.over, value.under)


def sum_of(terms: tuple[Expr, ...]) -> Expr:
    """``terms`` added up: nested sums are flattened, numbers are folded, like symbols are collected."""
    constant, order = Rational(0), dict[Expr, Rational]()
    for term in _flat(terms, Sum):
        factor, rest = _split(term)
        if rest is None:
            constant = constant.plus(factor)
        else:
            order[rest] = order.get(rest, Rational(0)).plus(factor)
    kept = [_scaled(factor, rest) for rest, factor in order.items() if factor.over]
    if constant.over or not kept:
        kept.append(number(constant))
    return kept[0] if len(kept) == 1 else Sum(tuple(kept))


def product_of(factors: tuple[Expr, ...]) -> Expr:
    """``factors`` multiplied: nested products are flattened, numbers are folded into one in front."""
    constant, rest = Rational(1), list[Expr]()
    for factor in _flat(factors, Product):
        if isinstance(factor, Num):
            constant = constant.times(Rational(factor.over, factor.under))
        else:
            rest.append(factor)
    if not rest or not constant.over:
        return number(constant)
    if len(rest) == 1 and isinstance(rest[0], Sum):
        return sum_of(tuple(product_of((number(constant), term)) for term in rest[0].terms))
    return _scaled(constant, rest[0] if len(rest) == 1 else Product(tuple(rest)))


def _flat(parts: tuple[Expr, ...], kind: type[Sum | Product]) -> list[Expr]:
    return [inner for part in parts for inner in (part.parts() if isinstance(part, kind) else (part,))]


def _split(term: Expr) -> tuple[Rational, Expr | None]:
    """``(number, rest)`` of a term; the rest is None when the term is a number."""
    if isinstance(term, Num):
        return Rational(term.over, term.under), None
    if isinstance(term, Product) and isinstance(term.factors[0], Num):
        rest = term.factors[1:]
        first = term.factors[0]
        return Rational(first.over, first.under), rest[0] if len(rest) == 1 else Product(rest)
    return Rational(1), term


def _scaled(factor: Rational, rest: Expr) -> Expr:
    if (factor.over, factor.under) == (1, 1):
        return rest
    inner = rest.factors if isinstance(rest, Product) else (rest,)
    return Product((number(factor), *inner))
