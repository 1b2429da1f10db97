"""Expressions and statements of kernels: what a lane computes, and what is not pretended to be known."""

from __future__ import annotations

import pytest

from aotidoctor.kernels import kernel_flow
from aotidoctor.kernels.kernel_expressions import ExpressionReader
from aotidoctor.kernels.value_trees import (
    MOST_ITERATIONS,
    IterationGrid,
    IterationLoop,
    Number,
    Read,
    UnknownError,
    Variable,
    factor,
    make_computed,
    reads,
)

X0 = Variable("x0")


class Table:
    """Ten times the offset."""

    def column(self, offsets):
        return [None if at is None else 10 * at for at in offsets]


def value(text, **names):
    reader = ExpressionReader(lambda name: names.get(name, Variable(name)), frozenset(("in_ptr0", "out_ptr0")))
    return reader.value(text)


def column(text, loops=((0, 3),), **names):
    made = value(text, **names)
    around = [IterationLoop(name=f"x{at}", start=Number(low), end=Number(high)) for at, (low, high) in enumerate(loops)]
    return list(
        IterationGrid(around, (made,), {"ks0": 7}, lambda name: Table() if name == "in_ptr0" else None).column(made)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in_ptr0[static_cast<int64_t>(x0 + 16L*ks0)]", [1120, 1130, 1140]),
        ("at::vec::VectorizedN<int64_t,2>::loadu(in_ptr0 + static_cast<int64_t>(x0), 16)", [0, 10, 20]),
        ("tmp5.template cast<float,1>().template loadu<int64_t,2>(in_ptr0 + static_cast<int64_t>(x0))", [0, 10, 20]),
        ("tl.load(in_ptr0 + (x0), xmask, eviction_policy='evict_last')", [0, 10, 20]),
        ("tl.load(in_ptr0 + x0 + 1, None, other=0.0)", [10, 20, 30]),
        ("x0 < 1 ? x0 + 100L : x0", [100, 1, 2]),
        ("decltype(tmp4)::blendv(x0, ks0, at::vec::VecMask<int64_t,2>(x0 < 1).template cast<int64_t,2>())", [7, 1, 2]),
        ("tl.where(x0 < 1, 5, -x0)", [5, -1, -2]),
        ("c10::convert<int64_t>(x0) - int64_t(1)", [-1, 0, 1]),
        # How 2.14 and later add, subtract and multiply whole numbers: without the overflow that C++ leaves undefined.
        (
            "int64_t(static_cast<std::make_unsigned_t<int64_t>>(x0) - static_cast<std::make_unsigned_t<int64_t>>(ks0))",
            [-7, -6, -5],
        ),
        (
            "int32_t(static_cast<std::make_unsigned_t<int32_t>>(x0) * static_cast<std::make_unsigned_t<int32_t>>(x0))",
            [0, 1, 4],
        ),
        ("at::vec::convert<int32_t,1,int64_t,2>(x0)", [0, 1, 2]),
        ("(x0).to(tl.int64) // 2", [0, 0, 1]),
        ("max_propagate_nan(x0, 1L) * std::min(x0, 1L)", [0, 1, 2]),
        ("remainder_integral(x0 - 2, decltype(x0)::set(decltype(x0)(1), ks0, static_cast<int64_t>(8L)))", [5, 6, 0]),
        ("(x0 - 2) % 7", [-2, -1, 0]),
        ("(x0 - 3) / 2", [-1, -1, 0]),
        ("c10::div_floor_integer(static_cast<int64_t>(x0 - 3), static_cast<int64_t>(2L))", [-2, -1, -1]),
        ("(tl.full([XBLOCK], 40, tl.int32)).to(tl.int32)", [40]),
        ("tmp1[x0_inner] + x0_inner", [3]),
        ("(0 <= x0) & (x0 < 2)", [1, 1, 0]),
        ("4 / (x0 - 1)", [-4, None, 4]),
    ],
)
def test_values(text, expected):
    assert column(text, tmp1=Number(3)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "mystery(x0)",
        "c10::convert<float>(x0)",
        "static_cast<std::make_unsigned_t<int8_t>>(x0)",
        "x0 ^ 3",
        "tmp9",
        "out_ptr0[x0]",
        "in_ptr0[",
        "1.5",
        "x0 ? 1",
        "",
        "'a",
    ],
)
def test_what_is_not_known_has_no_value(text):
    with pytest.raises(UnknownError):
        column(text)


def test_loops_run_innermost_fastest_and_not_for_ever():
    assert column("x0*10 + x1", loops=((0, 2), (3, 5))) == [3, 4, 13, 14]
    assert column("x1", loops=((0, 100), (3, 5))) == [3, 4]
    assert column("x0", loops=((4, 2),)) == []
    with pytest.raises(UnknownError):
        column("x0 + x1", loops=((0, MOST_ITERATIONS), (0, 2)))


def test_strides_of_an_index():
    tmp0 = Read("in_ptr0", X0)
    assert factor(value("x1 + 16L*tmp0", tmp0=tmp0), tmp0) == Number(16)
    assert factor(value("tmp0 + 16L*x0", tmp0=tmp0), tmp0) == Number(1)
    assert factor(value("x1 + ks0*tmp0", tmp0=tmp0), tmp0) == Variable("ks0")
    assert factor(value("x1 + 16L*x0", tmp0=tmp0), tmp0) is None
    assert factor(value("tmp0 + tmp0", tmp0=tmp0), tmp0) is None


def test_values_do_not_grow_without_end():
    grown = X0
    for _ in range(5000):
        grown = make_computed("+", grown, grown)
    assert reads(grown) == ()
    with pytest.raises(UnknownError):
        IterationGrid((), (grown,), {}, lambda _name: None).column(grown)


SCOPES = """extern "C" void k(const int64_t* in_ptr0, float* out_ptr0)
{
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(4L); x0+=static_cast<int64_t>(1L))
    {
        auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
        {
            auto tmp0 = in_ptr0[static_cast<int64_t>(2L*x0)];
        }
        AOTI_TORCH_CHECK((0 <= tmp0) & (tmp0 < 9L), "index out of bounds: 0 <= tmp0 < 9L");
        out_ptr0[static_cast<int64_t>(x0)] = tmp0;
    }
    {
        AOTI_TORCH_CHECK((0 <= tmp0) & (tmp0 < 8L), "index out of bounds: 0 <= tmp0 < 8L");
        auto tmp0 = unreadable {
        AOTI_TORCH_CHECK((0 <= tmp0) & (tmp0 < 7L), "index out of bounds: 0 <= tmp0 < 7L");
    }
}
"""


def test_names_live_in_their_scopes():
    flow = kernel_flow.follow_cpp(SCOPES, 10, frozenset(("in_ptr0", "out_ptr0")))
    inner, outside, unread = flow.checks
    assert inner.value == Read("in_ptr0", X0)
    assert [loop.name for loop in inner.loops] == ["x0"]
    assert inner.line == 18
    assert outside.value == Variable("tmp0")
    assert reads(unread.value) == ()
    assert [(store.parameter, store.at, store.value) for store in flow.stores] == [("out_ptr0", X0, inner.value)]


def test_a_name_that_changes_its_value_is_not_followed():
    changed = SCOPES.replace("auto tmp0 = in_ptr0[static_cast<int64_t>(2L*x0)];", "tmp0 = tmp0 + 1;")
    check = kernel_flow.follow_cpp(changed, 1, frozenset(("in_ptr0",))).checks[0]
    with pytest.raises(UnknownError):
        IterationGrid(check.loops, (check.value,), {}, lambda _name: Table()).column(check.value)


TRITON = """
def triton_red_fused_index_0(in_ptr0, in_ptr1, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr):
    xnumel = 2
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    x0 = (xindex % 2)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_mask = r0_index < r0_numel
        r0_1 = r0_index
        tmp0 = tl.load(in_ptr0 + (x0 + 2*r0_1), r0_mask & xmask, other=0.0)
        tl.device_assert(((0 <= tmp0) & (tmp0 < ks1)) | ~(r0_mask & xmask), "index out of bounds: 0 <= tmp0 < ks1")
        tmp1 = tmp0 < 3
        tl.device_assert(((0 <= tmp0) & (tmp0 < 9)) | ~(tmp1 & xmask), "index out of bounds: 0 <= tmp0 < 9")
        tmp2 = tl.load(in_ptr1 + (tmp0), r0_mask & xmask)
        tl.store(out_ptr0 + (r0_1 + 3*x0), tmp2, r0_mask & xmask)
"""


def test_triton_reductions_and_masks():
    flow = kernel_flow.follow_triton(TRITON, 1, frozenset(("in_ptr0", "in_ptr1", "out_ptr0")))
    plain, masked = flow.checks
    grid = IterationGrid(plain.loops, (plain.value,), {"r0_numel": 2}, lambda _name: Table())
    assert list(grid.column(plain.value)) == [0, 20, 10, 30]
    assert (plain.mask, plain.bound, plain.line) == (None, "ks1", 12)
    assert masked.mask is not None
    assert ("in_ptr1", plain.value) in [(access.parameter, access.at) for access in flow.accesses]
    assert [store.parameter for store in flow.stores] == ["out_ptr0"]
