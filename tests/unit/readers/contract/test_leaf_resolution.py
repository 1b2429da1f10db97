"""Inputs tell which leaves are tensors, where the package leaves it open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.contract import Dim, LeafSpec, ModelContract, OutputSpec, Symbol
from aotidoctor.model.inputs import Container, InputSet, Leaf, PlainValue, TensorDesc
from aotidoctor.readers.contract.sourceless_contract import resolve_leaves

OPEN = "which of the 3 leaves are tensors is not certain"
X = {"dtype": "int64", "rank": 2, "dims": (Dim(static=2), Dim(static=7)), "generated_name": "arg4_1"}
MASK = {"dtype": "float32", "rank": 1, "dims": (Dim(static=2),), "generated_name": "arg5_1"}


def contract():
    """Two tensors in three leaves, by the guess in the last two; they may as well be the first two."""
    leaves = (
        LeafSpec(index=0, path="args[0]", kind="unknown", triton_names=("INPUT__0",)),
        LeafSpec(index=1, path="args[1]", kind="tensor", input_index=0, triton_names=("INPUT__1",), **X),
        LeafSpec(index=2, path="args[2]", kind="unknown", input_index=1, triton_names=("INPUT__2",), **MASK),
    )
    return ModelContract(
        model_name="m",
        source="wrapper.cpp",
        args=Container(type="tuple", children=tuple(Leaf(value=at) for at in range(3))),
        kwargs=Container(type="dict", children=()),
        leaves=leaves,
        n_inputs=2,
        outputs=(OutputSpec(index=0, path="result", same_as="args[1]"),),
        symbols=(Symbol(name="s0", definition="", appears_in=("args[1].shape[0]",)),),
        readings=((None, 0, 1), (0, 1, None)),
        problems=("another", OPEN),
        open_leaves=OPEN,
    )


def call(*values):
    children = tuple(Leaf(value=value) for value in values)
    return InputSet(
        path=None,
        format="pt",
        form="args",
        args=Container(type="tuple", children=children),
        kwargs=Container(type="dict", children=()),
    )


def tensor(dtype, *shape):
    return TensorDesc(dtype=dtype, shape=shape, stride=None)


IDS, FLOATS, NONE = tensor("int64", 2, 7), tensor("float32", 2), PlainValue(type="None", text="None")


def test_tensors_stand_where_tensors_were_given():
    settled = resolve_leaves(contract(), call(IDS, FLOATS, NONE))
    assert [(leaf.path, leaf.kind, leaf.dtype) for leaf in settled.leaves] == [
        ("args[0]", "tensor", "int64"),
        ("args[1]", "tensor", "float32"),
        ("args[2]", "constant", None),
    ]
    assert [leaf.triton_names for leaf in settled.leaves] == [("INPUT__0",), ("INPUT__1",), ("INPUT__2",)]
    assert [leaf.generated_name for leaf in settled.tensor_leaves()] == ["arg4_1", "arg5_1"]
    assert settled.outputs[0].same_as == "args[0]"
    assert settled.symbols[0].appears_in == ("args[0].shape[0]",)
    assert (settled.problems, settled.readings) == (("another",), ())


def test_the_guess_can_be_right():
    settled = resolve_leaves(contract(), call(NONE, IDS, FLOATS))
    assert [leaf.kind for leaf in settled.leaves] == ["constant", "tensor", "tensor"]
    assert settled.problems == ("another",)


def test_a_call_with_a_fault_decides_and_makes_nothing_certain():
    settled = resolve_leaves(contract(), call(IDS, NONE, NONE))
    assert [leaf.dtype for leaf in settled.leaves] == ["int64", "float32", None]
    assert settled.leaves[2].kind == "unknown"
    assert OPEN in settled.problems


def test_a_tensor_too_many_is_a_fault_where_the_others_fit():
    settled = resolve_leaves(contract(), call(IDS, FLOATS, IDS))
    assert [leaf.kind for leaf in settled.leaves] == ["tensor", "tensor", "constant"]


@pytest.mark.parametrize("values", [(NONE, NONE, NONE), (FLOATS, FLOATS, FLOATS), ()])
def test_a_call_that_fits_both_alike_changes_nothing(values):
    assert resolve_leaves(contract(), call(*values)) == contract()


@pytest.mark.parametrize(
    "values", [(NONE, PlainValue(type="bool", text="False")), (NONE, PlainValue(type="int", text="3"))]
)
def test_a_missing_tensor_is_the_none_and_not_the_flag(values):
    """``model(input_ids=None, use_cache=False)``: what is missing is the ids."""
    leaves = (
        LeafSpec(index=0, path="args[0]", kind="unknown"),
        LeafSpec(index=1, path="args[1]", kind="unknown", input_index=0, **X),
    )
    open_contract = replace(
        contract(), leaves=leaves, n_inputs=1, readings=((None, 0), (0, None)), outputs=(), symbols=()
    )
    settled = resolve_leaves(open_contract, call(*values))
    assert [leaf.dtype for leaf in settled.leaves] == ["int64", None]
    assert settled.readings  # which it is stays open
    swapped = resolve_leaves(open_contract, call(*values[::-1]))
    assert [leaf.dtype for leaf in swapped.leaves] == [None, "int64"]
