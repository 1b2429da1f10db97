"""The straight code of a validator: True for a call without any peculiarity, and never for one that is wrong."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import replace
from types import SimpleNamespace

import pytest

from aotidoctor.commands.contract.shippable import ShippableContract, fast_check
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import Dim, LeafSpec, ModelContract
from aotidoctor.model.inputs import Container, Leaf

NO_KWARGS = Container(type="dict", children=())


def dim(text, **more):
    return Dim(static=int(text)) if text.isdecimal() else Dim(expr=parse_expr(text), **more)


def leaf(index, *sizes, **more):
    given = {"kind": "tensor", "input_index": index, "dtype": "float32", "rank": len(sizes), "device_type": "cpu"}
    dims = tuple(map(dim, sizes))
    return LeafSpec(index=index, path=f"args[{index}]", **({**given, "dims": dims} | more))


def contract(*leaves, args=None, kwargs=NO_KWARGS):
    args = args or Container(type="tuple", children=tuple(Leaf(value=at) for at in range(len(leaves))))
    return ModelContract(
        model_name="m", source="wrapper.cpp", args=args, kwargs=kwargs, leaves=leaves, n_inputs=len(leaves)
    )


def tensor(shape, strides, dtype="float32", *, device="cpu", neg=False, conj=False):
    return SimpleNamespace(
        shape=tuple(shape),
        dtype=dtype,
        device=SimpleNamespace(type=device),
        is_cpu=device == "cpu",
        is_neg=lambda: neg,
        is_conj=lambda: conj,
        stride=lambda: tuple(strides),
        # As numpy counts them, in bytes of float32.
        strides=tuple(4 * step for step in strides),
    )


def judged(told, flavour, *args, baked=None, **kwargs):
    wanted = ShippableContract(source="m", sha256=None, contract=told, symbols=(), baked=baked or {}, unstated=())
    names = {name: name for name in ("float32", "int64", "complex64")}
    scope = {"_NAMES": names, "_plain": repr, "_floor": lambda over, under: over // under}
    exec("\n".join(fast_check(wanted, flavour)), scope)
    return scope[f"_fast_{flavour}"](args, kwargs)


both = pytest.mark.parametrize("flavour", ["torch", "numpy"])


@both
@pytest.mark.parametrize(
    ("shape", "strides", "dtype", "right"),
    [
        ((4, 16), (16, 1), "float32", True),
        ((5, 16), (16, 1), "float32", False),
        ((4, 16), (1, 4), "float32", False),
        ((4, 16), (16, 1), "int64", False),
        ((4, 16, 1), (16, 1, 1), "float32", False),
    ],
)
def test_fixed_sizes(flavour, shape, strides, dtype, right):
    told = contract(leaf(0, "4", "16", strides=(16, 1)))
    assert judged(told, flavour, tensor(shape, strides, dtype)) is right


@both
@pytest.mark.parametrize(
    ("first", "second", "right"),
    [((6, 3), (3,), True), ((6, 4), (3,), False), ((6, 3), (4,), False), ((7, 3), (3,), False)],
)
def test_sizes_that_follow_from_a_symbol(flavour, first, second, right):
    told = contract(leaf(0, "2L*s0", "s0"), leaf(1, "s0"))
    assert judged(told, flavour, tensor(first, (first[1], 1)), tensor(second, (1,))) is right


@both
@pytest.mark.parametrize(("size", "step", "right"), [(5, 5, True), (5, 6, False), (7, 7, True)])
def test_strides_that_follow_from_a_symbol(flavour, size, step, right):
    told = contract(leaf(0, "4", "s0", strides=(None, 1), stride_exprs=(parse_expr("s0"), None)))
    assert judged(told, flavour, tensor((4, size), (step, 1))) is right
    assert judged(told, flavour, tensor((4, size), (step, 2))) is False


def test_bytes_that_are_no_whole_elements_are_refused():
    told = contract(leaf(0, "4", "s0", strides=(None, 1), stride_exprs=(parse_expr("s0"), None)))
    odd = tensor((4, 5), (5, 1))
    odd.strides = (22, 4)
    assert judged(told, "numpy", odd) is False


@both
def test_what_no_symbol_settles_is_not_compared(flavour):
    """A size of two symbols, one of them bound nowhere, agrees with every size."""
    told = contract(leaf(0, "s0", "s0*s9"), leaf(1, "s0/s0"))
    assert judged(told, flavour, tensor((2, 99), (99, 1)), tensor((5,), (1,))) is True


@both
@pytest.mark.parametrize("change", [{"dims": None, "rank": 2}, {"dims": (Dim(), Dim())}])
def test_unknown_sizes_leave_the_rank(flavour, change):
    told = contract(leaf(0, "1", "1", **change))
    assert judged(told, flavour, tensor((2, 3), (3, 1))) is True
    if "rank" in change:
        assert judged(told, flavour, tensor((3,), (1,))) is False
    else:
        with pytest.raises(ValueError, match="unpack"):
            judged(told, flavour, tensor((3,), (1,)))


def test_an_unknown_rank_takes_every_one():
    told = contract(leaf(0, dims=None, rank=None))
    assert judged(told, "torch", tensor((2, 3, 4), (12, 4, 1)))
    # Sizes that do not fit the rank are a contradiction: the slower code has to look.
    assert judged(contract(leaf(0, "2", rank=3)), "torch", tensor((2,), (1,))) is False


def test_an_unknown_dtype_takes_every_one_of_torch_and_none_of_numpy():
    told = contract(leaf(0, "2", dtype=None, strides=(1,)))
    assert judged(told, "torch", tensor((2,), (1,), "int64")) is True
    assert judged(told, "torch", tensor((2,), (1,), "int64", conj=True)) is False
    assert judged(told, "numpy", tensor((2,), (1,), "int64")) is False


@pytest.mark.parametrize(
    ("wanted", "given", "right"),
    [
        ("cpu", {}, True),
        ("cpu", {"device": "cuda"}, False),
        (None, {"device": "cuda"}, True),
        ("privateuseone", {"device": "privateuseone"}, True),
        ("privateuseone", {}, False),
        ("cpu", {"neg": True}, False),
        ("cpu", {"conj": True}, True),
    ],
)
def test_devices_and_views_of_torch(wanted, given, right):
    """A conjugate bit of a tensor that is not complex means nothing."""
    told = contract(leaf(0, "2", device_type=wanted, strides=(1,)))
    assert judged(told, "torch", tensor((2,), (1,), **given)) is right


@both
def test_containers_have_their_type_their_length_and_the_order_of_their_keys(flavour):
    inner = Container(type="dict", children=(Leaf(value=0), Leaf(value=1)), keys=("b", "a"))
    made = contract(leaf(0, "2"), leaf(1, "3"), args=Container(type="tuple", children=(inner,)))
    one, other = tensor((2,), (1,)), tensor((3,), (1,))
    assert judged(made, flavour, {"b": one, "a": other}) is True
    assert judged(made, flavour, {"a": other, "b": one}) is False
    assert judged(made, flavour, [one, other]) is False
    assert judged(made, flavour, {"b": one}) is False
    assert judged(made, flavour) is False
    listed = contract(leaf(0, "2"), args=Container(type="tuple", children=(replace(inner, type="list", keys=(), children=(Leaf(value=0),)),)))  # fmt: skip
    assert judged(listed, flavour, [one]) is True
    assert judged(listed, flavour, (one,)) is False


@both
@pytest.mark.parametrize(
    ("baked", "value", "right"),
    [({}, 3, True), ({}, object(), False), ({}, None, True), ({"kwargs['k']": "3"}, 3, True), ({"kwargs['k']": "3"}, 4, False)],
)  # fmt: skip
def test_values_that_were_fixed_at_export(flavour, baked, value, right):
    constant = LeafSpec(index=0, path="kwargs['k']", kind="constant")
    empty = Container(type="tuple", children=())
    told = contract(constant, args=empty, kwargs=Container(type="dict", children=(Leaf(value=0),), keys=("k",)))
    assert judged(told, flavour, baked=baked, k=value) is right


@both
def test_what_straight_code_cannot_see_is_left_to_the_slower(flavour):
    point = namedtuple("point", "x")  # noqa: PYI024 - one of another name than the contract's
    named = Container(type="namedtuple:point", children=(Leaf(value=0),), keys=("x",))
    told = contract(leaf(0, "2"), args=Container(type="tuple", children=(named,)))
    assert judged(told, flavour, point(tensor((2,), (1,)))) is False
    assert judged(replace(told, args=None), flavour, tensor((2,), (1,))) is False
