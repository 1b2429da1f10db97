"""The one grammar of generated code: what has no meaning for a reader, what is nested without end, loops, comparisons."""

from __future__ import annotations

import pytest

from aotidoctor.kernels.expressions import (
    UnreadableExpressionError,
    broken_comparisons,
    loop_header,
    parse_expr,
    syntax_of,
)
from aotidoctor.model.expr import Opaque


@pytest.mark.parametrize(
    "text",
    ["s0 < 4", "s0 ? 1 : 2", "*s0", "s0[1]", "s0.size()", "std::max", "f(s0)", "max()", "s0**2", "'s0'", "1e3", "~s0"],
)
def test_what_is_no_size_stays_a_text(text):
    assert parse_expr(text) == Opaque(text)


@pytest.mark.parametrize(
    "text",
    [
        "f" + "()" * 3000,
        "a" + ".b" * 3000,
        "a" + "[0]" * 2000,
        "f({" * 2000,
        "[" * 4000,
        "-" * 4000 + "a",
        "a ? " * 900,
    ],
)
def test_depth_has_an_end(text):
    with pytest.raises(UnreadableExpressionError):
        syntax_of(text)


def test_operators_bind_as_in_cpp():
    tree = syntax_of("a == b & c + d * e - f")
    assert [(tree.more, tree.parts[0].more, tree.parts[1].more)] == [(("&",), ("==",), ("+", "-"))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(9L); x0+=static_cast<int64_t>(16L))",
         ("x0", "static_cast<int64_t>(0L)", "static_cast<int64_t>(9L)", "static_cast<int64_t>(16L)")),
        ("for (long x1_tail = 8; x1_tail < 9; x1_tail++) {", ("x1_tail", "8", " 9", "1")),
        ("for(int64_t x0=9L; x0>0L; x0--)", None),
        ("for(int64_t x0=0L; x1<9L; x0++)", None),
    ],
)  # fmt: skip
def test_loops(line, expected):
    assert loop_header(line) == expected


def test_comparisons_that_do_not_hold():
    assert broken_comparisons("0 <= u0 < s17", {"u0": 3, "s17": 3}) == [(3, "<", 3)]
    assert broken_comparisons("0 <= u0 < s17", {"u0": 2, "s17": 3}) == []
    assert broken_comparisons("0 <= u0 < s17", {"s17": 3}) == []
