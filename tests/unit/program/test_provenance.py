"""What compiling may change and what it may not, on made-up contracts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.contract import ConstantSpec, Contract, Dim, KernelCall, LeafSpec, OutputSpec
from aotidoctor.model.expr import Sym
from aotidoctor.model.program import ProgramConstant, ProgramLeaf, ProgramOutput, ProgramTensor, SizeRange
from aotidoctor.model.tree import Container, Leaf
from aotidoctor.readers.provenance.compare import compare

S0 = Sym("s0")


def leaf(path="args[0]", *dims, **changes):
    made = LeafSpec(
        index=0,
        path=path,
        kind="tensor",
        input_index=0,
        dtype="float32",
        dims=dims or (Dim(min=2, max=64, expr=S0), Dim(static=4)),
        rank=len(dims) or 2,
        strides=(4, 1),
        device_type="cpu",
    )
    return replace(made, **changes)


def spec(path="args[0]", *shape, kind="tensor", **changes):
    tensor = ProgramTensor(dtype="float32", shape=shape or ("s0", "4"), stride=("4", "1"), device="cpu")
    return ProgramLeaf(name="x", path=path, kind=kind, tensor=replace(tensor, **changes) if kind == "tensor" else None)


def contract(*leaves, **changes):
    found = leaves or (leaf(),)
    made = Contract(
        model_name="model",
        source="wrapper.cpp",
        args=Container(type="tuple", children=tuple(Leaf(value=at) for at in range(len(found)))),
        kwargs=Container(type="dict", children=()),
        leaves=found,
        n_inputs=len(found),
        n_outputs=1,
        outputs=(OutputSpec(index=0, path="result", dtype="float32", shape=("s0", "4L")),),
    )
    return replace(made, **changes)


def program(*leaves, **changes):
    made = ExportedFacts(
        name="model",
        leaves=leaves or (spec(),),
        outputs=(ProgramOutput(kind="user_output", name="out", tensor=spec().tensor),),
        ranges={"s0": SizeRange(low=2, high=64)},
    )
    return replace(made, **changes)


def said(package, exported):
    return [
        f"{item.aspect} {item.kind}{'' if item.decisive else ' hint'}"
        for item in compare(package, exported).differences
    ]


def test_nothing_differs():
    assert said(contract(), program()) == []
    assert compare(contract(), program()).aspects[:3] == ("call", "inputs", "outputs")


def constants(*specs):
    return {"constants": tuple(ConstantSpec(name=name, original_fqn=name, kind=kind, dtype=dtype, shape=shape) for name, kind, dtype, shape in specs)}  # fmt: skip


def held(fqn="l.weight", *shape, dtype="float32"):
    tensor = ProgramTensor(dtype=dtype, shape=shape or ("12", "16"))
    return {"constants": (ProgramConstant(name="p", fqn=fqn, kind="parameter", tensor=tensor),)}


WEIGHT = ("l.weight", "parameter", "float32", (12, 16))


@pytest.mark.parametrize(
    ("package", "exported", "expected"),
    [
        (contract(leaf(), leaf("args[1]")), program(), ["call count"]),
        (contract(leaf("args[0]['b']"), leaf("args[0]['a']")), program(spec("args[0]['a']"), spec("args[0]['b']")), ["call order"]),
        (contract(leaf("kwargs['a']")), program(spec("kwargs['b']")), ["call names"]),
        (contract(leaf(kind="constant")), program(), ["call kind"]),
        (contract(leaf(kind="unknown")), program(), []),
        (contract(in_spec="[1, 2]"), program(in_spec="[1,2]"), []),
        (contract(in_spec="[1, 2]"), program(in_spec="[1, 3]"), ["call containers hint"]),
        (contract(leaf(dtype="float64")), program(), ["inputs dtype"]),
        (contract(leaf(dtype=None, dims=None, strides=None)), program(), []),
        (contract(leaf(dims=None, rank=3)), program(), ["inputs rank"]),
        (contract(leaf("args[0]", Dim(static=4))), program(), ["inputs rank"]),
        (contract(leaf(device_type="cuda")), program(), ["inputs device hint"]),
        (contract(leaf(strides=(1, 8))), program(), ["inputs strides hint"]),
        (contract(leaf("args[0]", Dim(min=2, max=64, expr=S0), Dim(static=5))), program(), ["inputs size"]),
        (contract(leaf("args[0]", Dim(static=8), Dim(static=4))), program(), ["inputs specialized hint"]),
        (contract(leaf("args[0]", Dim(static=65), Dim(static=4))), program(), ["inputs specialized"]),
        (contract(), program(spec("args[0]", "8", "4")), ["inputs dynamic"]),
        (contract(leaf("args[0]", Dim(), Dim(static=4))), program(spec("args[0]", "8", "4")), ["inputs dynamic hint"]),
        (contract(leaf("args[0]", Dim(min=2, max=32, expr=S0), Dim(static=4))), program(), ["inputs range hint"]),
        (contract(leaf("args[0]", Dim(min=2, max=65, expr=S0), Dim(static=4))), program(), ["inputs range"]),
        (contract(leaf("args[0]", Dim(min=4, max=64, expr=S0), Dim(static=4))), program(), ["inputs range hint"]),
        (contract(leaf("args[0]", Dim(min=1, max=64, expr=S0), Dim(static=4))), program(), ["inputs range hint"]),
        (contract(leaf("args[0]", Dim(expr=S0), Dim(static=4))), program(), []),
        (
            contract(leaf("args[0]", Dim(expr=S0)), leaf("args[1]", Dim(expr=Sym("s1")))),
            program(spec("args[0]", "s0"), spec("args[1]", "s0")),
            ["inputs shared-size"],
        ),
        (
            contract(leaf("args[0]", Dim(expr=S0)), leaf("args[1]", Dim(expr=S0))),
            program(spec("args[0]", "s0"), spec("args[1]", "s1")),
            ["inputs shared-size hint"],
        ),
        (contract(n_outputs=2), program(), ["outputs count"]),
        (contract(n_outputs=None), program(), []),
        (contract(outputs=(OutputSpec(index=0, path="result", dtype="int64"),)), program(), ["outputs dtype"]),
        (contract(outputs=(OutputSpec(index=0, path="result", shape=("s0", "5L")),)), program(), ["outputs shape"]),
        (contract(outputs=(OutputSpec(index=0, path="result", shape=("s0",)),)), program(), ["outputs shape"]),
        (contract(**constants(WEIGHT)), program(**held()), []),
        (contract(**constants(WEIGHT)), program(**held("m.weight")), ["constants name"]),
        (contract(**constants(WEIGHT)), program(**held("l.weight", "12", "8")), ["constants shape"]),
        (contract(**constants(WEIGHT)), program(**held(dtype="float16")), ["constants dtype"]),
        (contract(**constants(("_frozen_param0", "parameter", "float32", (3,)))), program(), []),
        (contract(custom_ops=("lab::mix",)), program(ops={"lab.mix.default": 1}), []),
        (contract(custom_ops=("lab::mix",)), program(ops={"aten.cat.default": 1}), ["operators custom hint"]),
        (
            contract(kernels=(KernelCall(name="cpp_fused_add_mul_0", kind="cpp"),)),
            program(ops={"aten.sin.default": 1}),
            ["operators kernels hint"],
        ),
        (
            contract(kernels=(KernelCall(name="cpp_fused_add_mul_0", kind="cpp"),)),
            program(ops={"aten.mul.Tensor": 1, "aten.sin.default": 1}),
            [],
        ),
    ],
)  # fmt: skip
def test_difference(package, exported, expected):
    assert said(package, exported) == expected


@pytest.mark.parametrize(
    ("package", "exported", "text"),
    [
        (contract(args=None), program(), "the package does not contain them"),
        (contract(), replace(program(), leaves=()), "the program does not contain them"),
        (contract(leaf(dtype=None)), program(), "dtype and dims of args[0]"),
        (contract(), program(outputs=()), "outputs: one of the two"),
        (contract(), program(**held()), "l.weight: not in the package"),
    ],
)
def test_what_cannot_be_compared_is_said(package, exported, text):
    assert any(text in reason for reason in compare(package, exported).left_out)


def test_small_constants_are_in_the_code():
    assert compare(contract(), program(**held("l.bias", "8"))).left_out == ()
