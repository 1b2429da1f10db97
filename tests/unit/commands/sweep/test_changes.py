"""Changes of one thing of a call, by leaf and by symbol."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from aotidoctor.commands.sweep.planned_calls import MOST_STRIDES, single_changes
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import BoundCheck, Dim, LeafSpec, ModelContract
from aotidoctor.model.inputs import Container, Leaf


def dynamic(text, low=None, high=None):
    return Dim(min=low, max=high, expr=parse_expr(text))


def tensor(*dims, **more):
    given = {"dtype": "float32", "rank": len(dims), "dims": dims}
    return LeafSpec(index=0, path="x", kind="tensor", input_index=0, **(given | more))


def changes(leaf, symbols=None, **more):
    told = ModelContract(
        model_name="m",
        source="wrapper.cpp",
        args=Container(type="tuple", children=(Leaf(value=0),)),
        kwargs=Container(type="dict", children=()),
        leaves=(leaf,),
        n_inputs=1,
    )
    return list(single_changes(replace(told, **more), symbols or {}))


def sizes(*dims, base=5):
    return {one.symbols["s0"] for one in changes(tensor(*dims), {"s0": base}) if one.symbols}


@pytest.mark.parametrize(
    ("dims", "values"),
    [
        ([dynamic("s0", 2, 64)], {2, 64, 65, 1, 0}),
        ([dynamic("s0")], {1, 0}),
        # The sizes of both dims hold: at least 3, at most 40.
        ([dynamic("s0", 2, 64), dynamic("2L*s0", 6, 80)], {3, 2, 40, 41, 1, 0}),
        # A bound of 2**31 and more is none.
        ([dynamic("s0", 2, 1 << 31)], {2, 1, 0}),
        # What no size of the symbol gives is no bound of it.
        ([dynamic("2L*s0", 3, 64)], {32, 33, 1, 0}),
        ([dynamic("s0", 0, 5)], {0, 6, 1}),
    ],
)
def test_the_bounds_of_a_symbol(dims, values):
    assert sizes(*dims) == values


def of(found, axis):
    return [one for one in found if one.axis == axis]


@pytest.mark.parametrize(
    ("dtype", "first", "count"),
    [
        ("float32", "float64", 10),
        ("float64", "float16", 10),
        ("int64", "int32", 10),
        ("uint8", "int32", 10),
        ("bool", "uint8", 10),
        ("bfloat16", "float64", 10),
        ("complex64", "complex128", 11),
        (None, None, 0),
    ],
)
def test_other_dtypes_the_likeliest_first(dtype, first, count):
    found = of(changes(tensor(Dim(static=2), dtype=dtype)), "dtype")
    assert len(found) == len({one.text for one in found}) == count
    assert dtype not in {one.text for one in found}
    assert [one.text for one in found if one.rank == min(item.rank for item in found)] == ([first] if first else [])


@pytest.mark.parametrize(
    "leaf",
    [
        tensor(dims=None, rank=None),
        # A size of a symbol that the call does not settle.
        tensor(dynamic("s9")),
    ],
)
def test_a_tensor_of_unknown_sizes_has_no_other_strides_or_ranks(leaf):
    assert {one.axis for one in changes(leaf)} == {"dtype", "none"}


def test_a_scalar_has_a_dim_more_and_none_less():
    found = changes(tensor())
    assert [(one.text, one.fields) for one in of(found, "rank")] == [("a dim more", {"shape": [1], "stride": None})]
    assert not of(found, "stride")


def elements(shape, strides):
    """Where the elements of a tensor lie, as many as it has."""
    places = [0]
    for size, step in zip(shape, strides, strict=True):
        places = [place + at * step for place in places for at in range(size)]
    return sorted(places)


@pytest.mark.parametrize(
    ("shape", "orders"), [((4, 3), 1), ((4, 1), 0), ((2, 3, 4), 5), ((2, 3, 4, 5), MOST_STRIDES), ((1, 3, 4), None)]
)
def test_dims_in_another_order_lie_dense_in_memory(shape, orders):
    found = of(changes(tensor(*(Dim(static=size) for size in shape))), "stride")
    dense = [one.fields["stride"] for one in found if "every second" not in one.text]
    assert orders is None or len(dense) == orders
    for strides in dense:
        assert elements(shape, strides) == list(range(math.prod(shape)))
        assert [step for step, size in zip(strides, shape, strict=True) if size != 1] != sorted(
            (step for step, size in zip(strides, shape, strict=True) if size != 1), reverse=True
        )
    wide = [one.fields["stride"] for one in found if "every second" in one.text]
    assert len(wide) == (shape[-1] > 1)
    for strides in wide:
        assert elements(shape, strides) == list(range(0, 2 * math.prod(shape), 2))


def test_one_size_of_a_tensor_alone():
    leaf = tensor(Dim(static=3), dynamic("s0"), dynamic("8L*s1"), Dim())
    found = [one for one in changes(leaf, {"s0": 2, "s1": 2}) if "of this tensor alone" in one.text]
    assert [(one.axis, one.fields["shape"]) for one in found] == [
        ("size", [4, 2, 16, 4]),
        ("size", [3, 3, 16, 4]),
        ("divisibility", [3, 2, 17, 4]),
        ("divisibility", [3, 2, 16, 5]),
    ]


CHECK = BoundCheck(kernel="k", text="", bound="100L")


@pytest.mark.parametrize(
    ("leaf", "checks", "values"),
    [
        (tensor(Dim(static=2), dtype="int64"), [CHECK, CHECK], [100, 99, -1]),
        (tensor(Dim(static=2), dtype="int64"), [replace(CHECK, bound="ks0")], []),
        (tensor(Dim(static=2), dtype="int64", used=False), [CHECK], []),
        (tensor(Dim(static=2)), [CHECK], []),
    ],
)
def test_values_of_what_may_be_an_index(leaf, checks, values):
    found = of(changes(leaf, bound_checks=tuple(checks)), "value")
    assert [one.fields["low"] for one in found] == [one.fields["high"] for one in found] == values


@pytest.mark.parametrize(("kind", "keys", "count"), [("dict", ("a", "b"), 1), ("dict", ("a",), 0), ("list", (), 0)])
def test_keys_in_another_order(kind, keys, count):
    node = Container(type=kind, children=(Leaf(value=0),) * len(keys), keys=keys)
    kwargs = Container(type="dict", children=(node,), keys=("k",))
    found = of(changes(tensor(), kwargs=kwargs), "keys")
    assert [one.keys for one in found] == ["kwargs['k']"] * count
    assert not of(changes(tensor(), kwargs=kwargs, args=None), "keys")
