"""Sizes as text: what is written computes what Python's own arithmetic does."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from aotidoctor.commands.contract.shippable import root_of, size_text
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.expr import Sym, step_of

# The functions of what is written, by their definition.
NAMES = {
    "_floor": lambda over, under: math.floor(Fraction(over, under)),
    "_cut": lambda over, under: math.trunc(Fraction(over, under)),
    "_mod": lambda over, under: over % under,
    "_max": max,
    "_min": min,
}


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        ("8*s0 + 3", lambda s0, _: 8 * s0 + 3),
        ("s0 - 5", lambda s0, _: s0 - 5),
        ("s0*s1", lambda s0, s1: s0 * s1),
        ("(1.0/2.0)*s0 + (1.0/3.0)*s1", lambda s0, s1: math.trunc(Fraction(s0, 2) + Fraction(s1, 3))),
        ("s0//4L", lambda s0, _: s0 // 4),
        ("c10::div_floor_integer(s0 + 1L, s1)", lambda s0, s1: (s0 + 1) // s1),
        ("s0 % 4L", lambda s0, _: s0 % 4),
        ("std::max({s0, s1, 6L})", lambda s0, s1: max(s0, s1, 6)),
        ("std::min(2L*s0, s1)", lambda s0, s1: min(2 * s0, s1)),
        ("std::floor((1.0/2.0)*s0)", lambda s0, _: s0 // 2),
        ("std::ceil((1.0/2.0)*s0)", lambda s0, _: -(-s0 // 2)),
        ("std::trunc((1.0/3.0)*s0)", lambda s0, _: math.trunc(Fraction(s0, 3))),
        ("std::max((1.0/2.0)*s0, 3L)", lambda s0, _: math.trunc(max(Fraction(s0, 2), 3))),
    ],
)
def test_the_text_computes_the_size(expr, value):
    parsed = parse_expr(expr)
    text = size_text(parsed, {"s0": "a", "s1": "b"})
    assert text is not None
    for s0 in (1, 2, 3, 7, 16):
        for s1 in (1, 2, 5):
            assert eval(text, {**NAMES, "a": s0, "b": s1}) == value(s0, s1), (text, s0, s1)


@pytest.mark.parametrize(
    "expr", [Sym(name="other"), parse_expr("s0 + other"), parse_expr("s0/s1"), parse_expr("s0 ? 1L : 2L")]
)
def test_what_integers_cannot_say_has_no_text(expr):
    assert size_text(expr, {"s0": "a"}) is None


@pytest.mark.parametrize(
    ("expr", "root", "step"),
    [
        ("s0", (1, 1, 0, 1), (1, 0)),
        ("8*s0 + 3", (8, 1, 3, 1), (8, 3)),
        ("(1.0/2.0)*s0", (1, 2, 0, 1), None),
        ("5", None, None),
        ("0*s0", None, None),
        ("s0*s1", None, None),
        ("s0*s0", None, None),
        ("100 - 2*s0", (-2, 1, 100, 1), (2, 100)),
    ],
)
def test_lines_in_one_symbol(expr, root, step):
    parsed = parse_expr(expr)
    assert root_of(parsed) == root
    assert step_of(parsed) == step
