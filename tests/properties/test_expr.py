"""Symbolic sizes: any text is read, the normal form is stable, values are those of Python's own arithmetic."""

import re
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.expr import Opaque, evaluate, solve, substitute

NAMES = ("s0", "s1", "s77", "arg3_1_size_0")
ENV = st.fixed_dictionaries({name: st.integers(0, 5000) for name in NAMES})


def _wrap(children):
    pair = st.tuples(children, children)
    return st.one_of(
        pair.map(lambda p: (f"({p[0][0]} + {p[1][0]})", lambda e: p[0][1](e) + p[1][1](e))),
        pair.map(lambda p: (f"({p[0][0]} - {p[1][0]})", lambda e: p[0][1](e) - p[1][1](e))),
        pair.map(lambda p: (f"({p[0][0]}*{p[1][0]})", lambda e: p[0][1](e) * p[1][1](e))),
        pair.map(
            lambda p: (f"std::max(static_cast<int64_t>({p[0][0]}), {p[1][0]})", lambda e: max(p[0][1](e), p[1][1](e)))
        ),
        pair.map(lambda p: (f"std::min<int64_t>({{{p[0][0]}, {p[1][0]}}})", lambda e: min(p[0][1](e), p[1][1](e)))),
        st.tuples(children, st.integers(1, 64)).map(
            lambda p: (
                f"c10::div_floor_integer(static_cast<int64_t>({p[0][0]}), static_cast<int64_t>({p[1]}L))",
                lambda e: Fraction(p[0][1](e) // p[1]),
            )
        ),
    )


LEAVES = st.one_of(
    st.sampled_from(NAMES).map(lambda name: (name, lambda e: Fraction(e[name]))),
    st.integers(0, 10**6).map(lambda value: (f"{value}L", lambda e: Fraction(value))),
)
EXPRESSIONS = st.recursive(LEAVES, _wrap, max_leaves=8)


@given(st.text())
def test_any_text_is_read_and_stable(text):
    expr = parse_expr(text)
    assert str(parse_expr(str(expr))) == str(expr)
    assert evaluate(expr, {}) is None or not expr.symbols


@given(st.text(alphabet="()s01+-*/%<>:,{}. L", max_size=60))
def test_text_of_the_right_letters_is_read_and_stable(text):
    assert str(parse_expr(str(parse_expr(text)))) == str(parse_expr(text))


@given(EXPRESSIONS, ENV)
def test_values_are_those_of_exact_arithmetic(expression, env):
    text, value = expression
    expr = parse_expr(text)
    assert not isinstance(expr, Opaque)
    wanted = value(env)
    assert evaluate(expr, env) == int(wanted)
    # Generated code has no numbers of more than 64 bits, and they are not read; folding constants can make them.
    assume(not re.search(r"\d{20}", str(expr)))
    assert evaluate(parse_expr(str(expr)), env) == int(wanted)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 5000))
def test_solve_undoes_evaluate(slope, constant, value):
    expr = parse_expr(f"{slope}L*s0 + {constant}L")
    size = evaluate(expr, {"s0": value})
    assert solve(expr, size) == (("s0", value) if slope else None)


@given(EXPRESSIONS, ENV)
def test_substituting_numbers_is_evaluating(expression, env):
    expr = parse_expr(expression[0])
    filled = substitute(expr, {name: parse_expr(str(value)) for name, value in env.items()})
    assert filled.symbols == frozenset()
    assert evaluate(filled, {}) == evaluate(expr, env)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("8L*s39", "8*s39"),
        ("1L + s77", "s77 + 1"),
        ("(1.0/2.0)*arg3_1_size_0", "arg3_1_size_0/2"),
        ("s0 + ((-1L)*s1)", "s0 - s1"),
        ("s0 + s0", "2*s0"),
        ("4L*(s0 + 1L)", "4*s0 + 4"),
        ("static_cast<int64_t>(std::floor((1.0/2.0)*s0))", "floor(s0/2)"),
    ],
)
def test_normal_form(text, shown):
    assert str(parse_expr(text)) == shown


@pytest.mark.parametrize(
    "text", ["", "s0 ? 1L : 2L", "f(s0)", "s0 << 2", "(" * 500, "9" * 30, "s0 +", "1 2", "std::max()"]
)
def test_what_is_not_known_is_opaque(text):
    expr = parse_expr(text)
    assert isinstance(expr, Opaque)
    assert evaluate(expr, {"s0": 1}) is None
    assert solve(expr, 4) is None


def test_solve_needs_an_integer_and_one_symbol():
    assert solve(parse_expr("8L*s39"), 30) is None
    assert solve(parse_expr("8L*s39 + 2L"), 34) == ("s39", 4)
    assert solve(parse_expr("(1.0/2.0)*s0"), 5) == ("s0", 10)
    assert solve(parse_expr("s0*s0"), 4) is None
    assert solve(parse_expr("s0 + s1"), 4) is None


def test_a_fraction_is_cut_towards_zero():
    assert evaluate(parse_expr("(1.0/8.0)*s0"), {"s0": 30}) == 3
    assert evaluate(parse_expr("(1.0/8.0)*s0"), {"s0": -30}) == -3


@pytest.mark.parametrize("text", ["s0/0L", "s0/s1", "c10::div_floor_integer(s0, s1)", "s0 % s1"])
def test_division_by_zero_has_no_value(text):
    assert evaluate(parse_expr(text), {"s0": 4, "s1": 0}) is None
