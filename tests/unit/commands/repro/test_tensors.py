from __future__ import annotations

import pytest

from aotidoctor.commands.repro.repro_script import UnmadeError, leaf_text, tree_text
from aotidoctor.model.inputs import Container, Leaf, PlainValue, TensorDesc


def tensor(dtype="float32", shape=(4, 8), stride="contiguous", **more):
    if stride == "contiguous":
        stride = {0: (), 1: (1,), 2: (shape[-1] if shape else 1, 1)}.get(len(shape))
    return TensorDesc(dtype=dtype, shape=shape, stride=stride, **more)


@pytest.mark.parametrize(
    ("desc", "text"),
    [
        (tensor(), "torch.rand((4, 8))"),
        (tensor("float64"), "torch.rand((4, 8), dtype=torch.float64)"),
        (tensor("int64", (8,)), "torch.ones((8,), dtype=torch.int64)"),
        (tensor("bool", (8,)), "torch.ones((8,), dtype=torch.bool)"),
        (tensor("int64", ()), "torch.ones((), dtype=torch.int64)"),
        (tensor("float8_e4m3fn", (8,)), "torch.rand((8,)).to(torch.float8_e4m3fn)"),
        (tensor(stride=(1, 4)), "torch.rand((32,)).as_strided((4, 8), (1, 4))"),
        (tensor(stride=(16, 2)), "torch.rand((63,)).as_strided((4, 8), (16, 2))"),
        (tensor(stride=(0, 1)), "torch.rand((8,)).as_strided((4, 8), (0, 1))"),
        (tensor(shape=(0, 8), stride=(5, 1)), "torch.rand((0, 8))"),
        (tensor(device="meta"), 'torch.rand((4, 8), device="meta")'),
        (tensor(device="cuda:1"), 'torch.rand((4, 8), device="cuda:1")'),
        (tensor("complex64", conj=True), "torch.rand((4, 8), dtype=torch.complex64).conj()"),
        (tensor(neg=True), "torch._neg_view(torch.rand((4, 8)))"),
        (tensor(requires_grad=True), "torch.rand((4, 8)).requires_grad_()"),
        (
            tensor(subclass="Parameter", requires_grad=True),
            "torch.nn.Parameter(torch.rand((4, 8)), requires_grad=True)",
        ),
        (tensor(layout="sparse_csr", stride=None), "torch.rand((4, 8)).to_sparse_csr()"),
        (tensor("quint8", quantized=True), "torch.quantize_per_tensor(torch.rand((4, 8)), 0.1, 10, torch.quint8)"),
        (PlainValue(type="int", text="3"), "3"),
        (PlainValue(type="float", text="nan"), 'float("nan")'),
        (PlainValue(type="None", text="None"), "None"),
        (PlainValue(type="dtype", text="torch.float32"), "torch.float32"),
        (
            PlainValue(type="ndarray", text="...", shape=(2, 3), dtype="float32"),
            "torch.ones((2, 3), dtype=torch.float32).numpy()",
        ),
    ],
)
def test_a_leaf_as_an_expression(desc, text):
    assert leaf_text(desc, "args[0]") == text


@pytest.mark.parametrize(
    "value",
    [PlainValue(type="Config", text="<Config>"), PlainValue(type="str", text="'" + "x" * 79), tensor(layout="x")],
)
def test_what_has_no_expression_is_named(value):
    with pytest.raises(UnmadeError, match=r"kwargs\['a'\]"):
        leaf_text(value, "kwargs['a']")


def test_containers_keep_their_kinds_and_keys():
    x = Leaf(value=tensor("int64", (2,)))
    nested = Container(type="dict", keys=("a", 1), children=(x, Container(type="list", children=(x,))))
    tree = Container(type="tuple", children=(nested,))
    one = "torch.ones((2,), dtype=torch.int64)"
    assert tree_text(tree, "args", {}) == f'({{"a": {one}, 1: [{one}]}},)'
    assert tree_text(tree, "args", {"args[0]['a']": "given"}) == f'({{"a": given, 1: [{one}]}},)'


def test_a_named_tuple_is_no_plain_container():
    tree = Container(type="namedtuple:Point", keys=("x",), children=(Leaf(value=tensor()),))
    with pytest.raises(UnmadeError, match="args is a Point"):
        tree_text(tree, "args", {})
