"""Made-up inputs stay inside the contract."""

from dataclasses import replace

import pytest

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import BoundCheck, Dim, KernelCall, LeafSpec, ModelContract, Reads
from aotidoctor.model.inputs import Container, Leaf
from aotidoctor.readers.inputs.live_and_generated import generate_inputs


def leaf(index, dims, *, dtype="float32", **fields):
    return LeafSpec(
        index=index, path=f"args[{index}]", kind="tensor", input_index=index, dtype=dtype, dims=dims, **fields
    )


def contract(*leaves, **fields):
    args = Container(type="tuple", children=tuple(Leaf(value=item.index) for item in leaves))
    kwargs = Container(type="dict", children=())
    return ModelContract(
        model_name="model",
        source="wrapper.cpp",
        args=args,
        kwargs=kwargs,
        leaves=leaves,
        n_inputs=len(leaves),
        **fields,
    )


def dynamic(text, low=None, high=None):
    return Dim(min=low, max=high, expr=parse_expr(text))


def shapes(made):
    return [tensor.shape for _, tensor in made.tensors()]


def test_static_and_shared_symbols():
    spec = contract(leaf(0, (dynamic("s0", 2, 1024), Dim(static=16))), leaf(1, (dynamic("s0"), dynamic("s1", 2))))
    inputs, document = generate_inputs(spec, seed=0)
    first, second = shapes(inputs)
    assert first[1] == 16
    assert 2 <= first[0] == second[0] <= 1024
    assert document["args"][0]["tensor"]["shape"] == list(first)


@pytest.mark.parametrize(
    ("dims", "good"),
    [
        ((dynamic("s0", 100, 200),), lambda size: 100 <= size <= 200),
        ((dynamic("s0", 0, 1),), lambda size: size in (0, 1)),
        ((dynamic("8*s0", 64, 800),), lambda size: size % 8 == 0 and 64 <= size <= 800),
        ((dynamic("s0 + 3", 9, 9),), lambda size: size == 9),
        ((Dim(min=7),), lambda size: size >= 7),
        ((Dim(max=3),), lambda size: size <= 3),
    ],
)
def test_ranges(dims, good):
    ((size,),) = shapes(generate_inputs(contract(leaf(0, dims)), seed=0)[0])
    assert good(size)


def test_sum_of_two_symbols_is_inside_its_range():
    spec = contract(leaf(0, (dynamic("s0", 2),)), leaf(1, (dynamic("s1", 2),)), leaf(2, (dynamic("s0 + s1", 50, 60),)))
    first, second, both = (shape[0] for shape in shapes(generate_inputs(spec, seed=0)[0]))
    assert both == first + second
    assert 50 <= both <= 60


@pytest.mark.parametrize("first", [Dim(min=2, max=64), dynamic("s0", 2, 64)])
def test_unknown_relations_hold_at_the_lower_bounds(first):
    spec = contract(leaf(0, (first,)), leaf(1, (Dim(min=3, max=65),)), leaf(2, (Dim(min=4, max=128),)))
    assert [shape[0] for shape in shapes(generate_inputs(spec, seed=0)[0])] == [2, 3, 4]


def test_impossible_range_is_noted():
    inputs, _ = generate_inputs(contract(leaf(0, (dynamic("s0", 9, 3),))), seed=0)
    assert any("s0" in note for note in inputs.notes)


@pytest.mark.parametrize(
    ("strides", "stride"),
    [
        ((48, 1, 12, 3), (48, 1, 12, 3)),
        ((None, 1, None, 3), (48, 1, 12, 3)),
        ((48, 16, 4, 1), (48, 16, 4, 1)),
        ((None, None, None, 1), (48, 16, 4, 1)),
        ((100, 1, 12, 3), (100, 1, 12, 3)),
    ],
)
def test_strides(strides, stride):
    dims = tuple(Dim(static=size) for size in (2, 3, 4, 4))
    ((_, tensor),) = generate_inputs(contract(leaf(0, dims, strides=strides)), seed=0)[0].tensors()
    assert tensor.stride == stride


def test_integers_fit_tables():
    spec = contract(leaf(0, (Dim(static=4),), dtype="int64"))
    assert generate_inputs(spec, seed=0)[1]["args"][0]["tensor"]["high"] == 1
    narrow = contract(
        leaf(0, (Dim(static=4),), dtype="int64"), bound_checks=(BoundCheck(kernel="k", text="", bound="1L"),)
    )
    assert generate_inputs(narrow, seed=0)[1]["args"][0]["tensor"]["high"] == 0


def test_integers_are_no_zero_divisors():
    kernel = KernelCall(name="cpp_fused_div_0", kind="cpp", origins=("aten.floor_divide", "aten.div"))
    spec = contract(leaf(0, (Dim(static=4),), dtype="int64"), kernels=(kernel,))
    assert generate_inputs(spec, seed=0)[1]["args"][0]["tensor"]["low"] == 1


def test_tree_with_constants_and_seed():
    leaves = (leaf(0, (Dim(static=2),)), LeafSpec(index=1, path="args[1]['k']", kind="constant"), leaf(2, ()))
    spec = contract(*leaves)
    inner = Container(type="dict", children=(Leaf(value=1), Leaf(value=2)), keys=("k", "t"))
    args = Container(type="tuple", children=(Leaf(value=0), inner))
    spec = ModelContract(model_name="m", source="wrapper.cpp", args=args, kwargs=spec.kwargs, leaves=leaves, n_inputs=2)
    inputs, document = generate_inputs(spec, seed=3)
    assert [path for path, _ in inputs.leaves()] == ["args[0]", "args[1]['k']", "args[1]['t']"]
    assert dict(inputs.leaves())["args[1]['k']"].type == "None"
    assert (inputs.form, inputs.args.type) == ("generated", "tuple")
    assert generate_inputs(spec, seed=3)[1] == document != generate_inputs(spec, seed=4)[1]


def test_contract_without_trees():
    spec = ModelContract(
        model_name="m", source="recovered", args=None, kwargs=None, n_inputs=2,
        leaves=(leaf(1, (Dim(static=3),), rank=1), leaf(0, None, dtype=None, rank=2)),
    )  # fmt: skip
    inputs, _ = generate_inputs(spec, seed=0)
    assert [len(shape) for shape in shapes(inputs)] == [2, 1]
    assert len(inputs.notes) == 2


@pytest.mark.parametrize(
    ("dims", "reads", "shape"),
    [
        (None, (), (1,)),
        (None, ("16", "3"), (16,)),
        # torch 2.6 tells of an input only what the code asks it for.
        ((dynamic("s0", 4, 4),), ("16*s0",), (4, 16)),
        ((dynamic("s0", 4, 4),), ("s0 + 1",), (4, 2)),
        ((dynamic("s0", 4, 4),), ("s0", "s9"), (4,)),
        (None, ("16*s0*s9",), (1,)),
    ],
)
def test_what_a_kernel_reads_is_there_where_no_shape_is_recorded(dims, reads, shape):
    spec = contract(leaf(0, dims, reads=tuple(Reads(extent=parse_expr(text)) for text in reads)))
    inputs, _ = generate_inputs(spec, seed=0)
    assert shapes(inputs) == [shape]
    assert any("does not record its shape" in note for note in inputs.notes)


def test_containers_are_called_as_in_the_call_spec():
    pair = Container(type="namedtuple:Point", children=(Leaf(value=0), Leaf(value=1)))
    record = Container(type="my.Record", children=(Leaf(value=2),), keys=("x",))
    spec = contract(*(leaf(index, (Dim(static=2),)) for index in range(3)))
    args = Container(type="tuple", children=(pair, record))
    inputs, document = generate_inputs(replace(spec, args=args), seed=0)
    assert [child.type for child in inputs.args.children] == ["namedtuple:Point", "my.Record"]
    assert [path for path, _ in inputs.leaves()] == ["args[0][0]", "args[0][1]", "args[1].x"]
    assert [list(entry) for entry in document["args"]] == [["tuple"], ["dict"]]
