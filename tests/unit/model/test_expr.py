"""Values of symbolic sizes as C++ computes them, and what they are solved for."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.expr import ExprFunction, Num, Opaque, Product, Sum, Sym, evaluate, linear, solve

S = Sym("s0")


@pytest.mark.parametrize("over", [-7, -6, -1, 0, 1, 6, 7])
@pytest.mark.parametrize(("name", "plain"), [("floor", math.floor), ("ceil", math.ceil), ("trunc", math.trunc)])
def test_roundings(name, plain, over):
    half = Product((Num(1, 2), S))
    assert evaluate(ExprFunction(name, (half,)), {"s0": over}) == plain(Fraction(over, 2))


@pytest.mark.parametrize(("name", "expected"), [("max", 5), ("min", -3), ("floordiv", -2), ("mod", 2)])
def test_functions_of_two(name, expected):
    """``5 % -3`` is 2 in C++, where the sign is that of the dividend; ``5 // -3`` is -2 in Python."""
    assert evaluate(ExprFunction(name, (Num(5), S)), {"s0": -3}) == expected


@pytest.mark.parametrize("name", ["div", "floordiv", "mod"])
def test_nothing_is_divided_by_zero(name):
    assert evaluate(ExprFunction(name, (Num(5), S)), {"s0": 0}) is None


def test_a_fraction_is_cut_towards_zero():
    assert [evaluate(Product((Num(1, 2), S)), {"s0": over}) for over in (7, -7)] == [3, -3]


def test_a_symbol_without_a_value_and_text_that_is_not_understood():
    assert evaluate(Sum((S, Num(1))), {}) is None
    assert evaluate(Opaque("f(x)"), {"x": 1}) is None


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("8*s39", 32, ("s39", 4)),
        ("8*s39", 30, None),
        ("s0 + 3", 9, ("s0", 6)),
        ("2*s0 - 1", 7, ("s0", 4)),
        ("5", 5, None),
        ("s0 + s1", 5, None),
        ("s0*s0", 9, None),
    ],
)
def test_solving(text, value, expected):
    assert solve(parse_expr(text), value) == expected


def test_what_is_no_straight_line():
    floor = ExprFunction("floor", (Product((Num(1, 2), S)),))
    assert linear(Sum((S, floor))) is None
    assert linear(Product((Num(2), floor))) is None
    assert solve(Sum((S, floor)), 6) is None
