"""What compiling may change and what it may not, on made-up contracts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.artifact import (
    ArchivePayload,
    ExportedFacts,
    ModelEntry,
    ProgramArchive,
    ProgramConstant,
    ProgramLeaf,
    ProgramOutput,
    ProgramTensor,
    SizeRange,
    StorageContent,
    StoredTensor,
)
from aotidoctor.model.contract import ConstantSpec, Dim, KernelBody, KernelCall, LeafSpec, ModelContract, OutputSpec
from aotidoctor.model.expr import Sym
from aotidoctor.model.inputs import Container, Leaf
from aotidoctor.program.compiled_from import OriginCase, judge_origin
from aotidoctor.readers.provenance.compare_program import compare_program

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
    made = ModelContract(
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
        for item in compare_program(package, exported).differences
    ]


def test_nothing_differs():
    assert said(contract(), program()) == []
    assert compare_program(contract(), program()).aspects[:3] == ("call", "inputs", "outputs")


def constants(*specs):
    return {"constants": tuple(ConstantSpec(name=name, original_fqn=name, kind=kind, dtype=dtype, shape=shape) for name, kind, dtype, shape in specs)}  # fmt: skip


def held(fqn="l.weight", *shape, dtype="float32"):
    tensor = ProgramTensor(dtype=dtype, shape=shape or ("12", "16"))
    return {"constants": (ProgramConstant(name="p", fqn=fqn, kind="parameter", tensor=tensor),)}


def result(dtype):
    return {"outputs": (ProgramOutput(kind="user_output", name="out", tensor=spec(dtype=dtype).tensor),)}


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
        # A batch from 1 on is compiled from 2 on.
        (contract(), program(ranges={"s0": SizeRange(low=1, high=64)}), []),
        (contract(), program(ranges={"s0": SizeRange(low=0, high=64)}), []),
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
        # A reduction of a small dtype is promoted by some lowerings; of a float it never is.
        (contract(outputs=(OutputSpec(index=0, path="result", dtype="int64"),)), program(**result("int8")), ["outputs dtype hint"]),
        (contract(outputs=(OutputSpec(index=0, path="result", dtype="bool"),)), program(**result("uint8")), ["outputs dtype hint"]),
        (contract(outputs=(OutputSpec(index=0, path="result", dtype="float32"),)), program(**result("int8")), ["outputs dtype"]),
        (contract(outputs=(OutputSpec(index=0, path="result", shape=("s0", "5L")),)), program(), ["outputs shape"]),
        (contract(outputs=(OutputSpec(index=0, path="result", shape=("s0",)),)), program(), ["outputs shape"]),
        (contract(**constants(WEIGHT)), program(**held()), []),
        (contract(**constants(WEIGHT)), program(**held("m.weight")), ["constants name"]),
        (contract(**constants(WEIGHT)), program(**held("l.weight", "12", "8")), ["constants shape"]),
        (contract(**constants(WEIGHT)), program(**held(dtype="float16")), ["constants dtype"]),
        (contract(**constants(("_frozen_param0", "parameter", "float32", (3,)))), program(), []),
        (contract(custom_ops=("lab::mix",)), program(ops={"lab.mix.default": 1}), []),
        (contract(custom_ops=("lab::mix.scaled",)), program(ops={"lab.mix.scaled": 1}), []),
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
    assert any(text in reason for reason in compare_program(package, exported).left_out)


def test_small_constants_are_in_the_code():
    assert compare_program(contract(), program(**held("l.bias", "8"))).left_out == ()


def functions(package, nodes, code="", *, ops=None, names=()):
    """The differences in functions of a package of these calls from a program of these live nodes."""
    targets = ops if ops is not None else {f"{target.partition('(')[0]}.default": 1 for target in nodes.values()}
    exported = program(ops=targets, functions=nodes, nodes=frozenset({*nodes, *names}))
    model = ModelEntry(name="model", layout="pt2", members=(), kernel_sources={"k.cpp": code})
    found = compare_program(contract(kernels=tuple(package)), exported, model).differences
    return [(item.package, item.program, item.decisive) for item in found if item.kind == "functions"]


def call(name, *origins, nodes=()):
    return KernelCall(name=name, kind="cpp", origins=origins, source_nodes=nodes)


RELU = {"relu": "aten.relu", "add": "aten.add"}


@pytest.mark.parametrize(
    ("package", "nodes", "code", "expected"),
    [
        ([call("cpp_fused_add_relu_0")], RELU, "", []),
        ([call("cpp_fused_add_0")], RELU, "", [("does not compute relu", "relu", True)]),
        # What is not on the way from an input to an output is no node of these.
        ([call("cpp_fused_add_0")], {"add": "aten.add"}, "", []),
        ([call("cpp_fused_0")], {"sin": "aten.sin"}, "auto tmp1 = std::sin(tmp0);", []),
        ([call("cpp_fused_0")], {"sin": "aten.sin"}, "auto tmp1 = tmp0.sinh();", [("does not compute sin", "sin", True)]),
        ([call("aoti_torch_cpu_sort_stable")], {"sort": "aten.sort"}, "", []),
        # Equal code has the name of the first: clamp_min(0) and relu.
        ([call("cpp_fused_clamp_min_0")], {**RELU, "clamp_min": "aten.clamp_min"}, "", []),
        ([call("cpp_fused_relu_0", "aten.relu", "aten.tanh")], RELU, "", [("computes tanh", "no tanh", True)]),
        # Without a list of operators the name of the kernel tells them, if it cannot be a part of another's name.
        ([call("cpp_fused_add_relu_tanh_0")], RELU, "", [("computes tanh", "no tanh", True)]),
        ([call("cpp_fused_add_leaky_relu_0")], {"add": "aten.add", "leaky_relu": "aten.leaky_relu"}, "", []),
        ([call("cpp_fused_gelu_tanh_0")], {"gelu": "aten.gelu"}, "", []),
        ([call("cpp_fused_relu_0", nodes=("add", "relu", "mul", "relu_1"))], {**RELU, "mul": "aten.mul"}, "",
         []),
    ],
)  # fmt: skip
def test_functions_that_only_one_of_the_two_has(package, nodes, code, expected):
    assert functions(package, nodes, code) == expected


def test_a_node_more_than_the_program_has():
    nodes = {**RELU, **{f"add_{at}": "aten.add" for at in range(1, 12)}}
    known = tuple(nodes)
    assert functions([call("cpp_fused_add_relu_0", nodes=(*known, "relu_1"))], nodes) == [
        ("computes relu_1", "no relu_1", True)
    ]
    # Where the other nodes do not have the program's names, a name says nothing.
    other = tuple(f"n{at}" for at in range(9))
    assert functions([call("cpp_fused_add_relu_0", nodes=(*other, "add", "relu", "relu_1"))], nodes) == []


@pytest.mark.parametrize(
    ("origins", "target", "expected"),
    [
        (("aten.gelu", "aten.add"), "aten.relu", [("computes gelu in the node gelu_1", "relu", True)]),
        (("aten.gelu", "aten.add"), "aten.gelu", []),
        # The kernel has both: which of them is the node's is not known.
        (("aten.gelu", "aten.relu"), "aten.relu", []),
        # A node may have any name.
        (("aten.relu", "aten.add"), "aten.relu", []),
    ],
)
def test_a_function_where_the_program_has_another_in_that_node(origins, target, expected):
    nodes = {"gelu": "aten.gelu", "gelu_1": target, "relu": "aten.relu", "add": "aten.add"}
    ops = {"aten.gelu.default": 1, "aten.relu.default": 2, "aten.add.Tensor": 1, "zoo.scale.default": 1}
    kernels = [call("cpp_fused_add_gelu_0", *origins, nodes=("gelu_1", "add")), call("cpp_fused_gelu_relu_1")]
    assert functions(kernels, nodes, ops=ops) == expected


def test_the_generated_kernel_is_named_not_the_call_that_lists_it():
    nodes = {"relu": "aten.tanh", "addmm": "aten.addmm"}
    library = KernelCall(
        name="aoti_torch_cpu_addmm_out",
        kind="extern",
        origins=("aten.relu", "aten.addmm"),
        source_nodes=("relu", "addmm"),
    )
    package = contract(kernels=(call("cpp_fused_relu_1"), library))
    exported = program(ops={"aten.tanh.default": 1, "aten.addmm.default": 1}, functions=nodes, nodes=frozenset(nodes))
    found = [item for item in compare_program(package, exported, None).differences if item.kind == "functions"]
    assert [item.subject for item in found] == ["cpp_fused_relu_1"]


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("aten.gelu(none)", "tmp0.erf()", 0),
        ("aten.gelu(tanh)", "tmp0.tanh()", 0),
        ("aten.gelu", "std::erf(tmp0)", 0),
        ("aten.gelu", "tmp0.tanh()", 1),
        ("aten.gelu(tanh)", "tmp0.erf()", 1),
        # Both are there: it is not known which is whose.
        ("aten.gelu(tanh)", "tmp0.erf() + tmp1.tanh()", 0),
    ],
)
def test_gelu_in_the_other_way_may_be_the_compilers(target, code, said):
    exported = program(ops={"aten.gelu.default": 1}, functions={"gelu": target}, nodes=frozenset({"gelu"}))
    body = KernelBody(name="cpp_fused_gelu_0", kind="cpp", member="k.cpp", line=1, lines=1)
    package = contract(kernels=(call("cpp_fused_gelu_0"),), bodies=(body,))
    model = ModelEntry(name="model", layout="pt2", members=(), kernel_sources={"k.cpp": code})
    found = [item for item in compare_program(package, exported, model).differences if item.kind == "functions"]
    assert [item.decisive for item in found] == [False] * said


def stored(data):
    content = StorageContent(len(data), lambda at, length: data[at : at + length])
    return StoredTensor(fqn="l.weight", dtype="uint8", shape=(4,), stride=(1,), content=content)


@pytest.mark.parametrize(
    ("high", "data", "kind"),
    [
        # A compiler's choice, by what it found to be true of the sizes; without the weights, another program's too.
        (15, b"abcd", "same"),
        (15, b"abce", "other-weights"),
        (15, None, "unknown"),
        (65, b"abcd", "other-program"),
    ],
)
def test_a_smaller_range_with_the_programs_weights_is_the_compilers(high, data, kind):
    theirs = {"l.weight": ArchivePayload(stored=stored(b"abcd"), member="w")}
    archive = ProgramArchive(
        path="p.pt2", member="model", layout="pt2", facts=program(), document={}, weights=theirs, constants={}
    )
    package = contract(leaf("args[0]", Dim(min=2, max=high, expr=S0), Dim(static=4)))
    ours = {} if data is None else {"l.weight": stored(data)}
    found, _ = judge_origin(OriginCase(package="m.pt2", archive=archive, contract=package, stored=ours))
    assert (found[-1].code, found[-1].kind) == ("VERIFY-P00", kind)
