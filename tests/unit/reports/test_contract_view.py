from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import Dim, KernelCall, LeafSpec, ModelContract, OutputSpec, Unread
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.inputs import Container, InputSet, Leaf, PlainValue, ValueStats
from aotidoctor.reports import package_view
from aotidoctor.reports.package_view import kernel_text
from aotidoctor.reports.page.package_page import leaf_lines
from tests.unit.reports import builders


def test_leaves_of_an_object_are_inside_it():
    """What cannot be seen is not missing, and the object is not one leaf too many."""
    empty = Container(type="dict", children=())
    record = Container(type="my.Record", children=(Leaf(value=0), Leaf(value=1)), keys=("x", "y"))
    leaves = tuple(
        LeafSpec(index=at, path=f"args[0].{name}", kind="tensor", input_index=at) for at, name in enumerate("xy")
    )
    args = Container(type="tuple", children=(record,))
    contract = ModelContract(model_name="m", source="wrapper.cpp", args=args, kwargs=empty, leaves=leaves, n_inputs=2)
    value = PlainValue(type="Record", text="my.Record(...)")
    given = Container(type="tuple", children=(Leaf(value=value),))
    inputs = InputSet(path="s.pt", format="pt", form="args", args=given, kwargs=empty)
    note = Evidence(
        code="AD-IN-002", kind="object", severity=Severity.INFO, subject="args[0]", observed="", expected=""
    )
    report = builders.report()
    report = replace(report, case=replace(report.case, contract=contract, inputs=inputs), findings=(note,))
    assert [(row.cells[0].words, row.cells[2].words) for row in leaf_lines(report)] == [
        ("args[0].x", "inside an object"),
        ("args[0].y", "inside an object"),
    ]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "triton"),
        ({"origins": ("aten.add", "aten.relu")}, "triton: aten.add, aten.relu"),
        (
            {"grid": ("((xnumel + (128 - 1)) / (128))", "1", "1"), "warps": "4", "shared": "0"},
            "triton; grid ceil(xnumel / 128), 4 warps",
        ),
        ({"grid": ("xnumel", "ynumel", "1"), "warps": "1"}, "triton; grid xnumel x ynumel, 1 warp"),
        ({"grid": ("1", "1", "1"), "shared": "256"}, "triton; grid 1, 256 bytes shared"),
    ],
)
def test_a_kernel_tells_how_it_is_launched(settings, text):
    assert kernel_text(KernelCall(name="k", kind="triton", **settings)) == text


def test_strides_that_the_source_tells_in_symbols_are_shown():
    leaf = replace(builders.X, strides=(None, None, 1), stride_exprs=(parse_expr("8*s27"), None, None))
    assert package_view.stride_texts(leaf) == ("8*s27", "?", "1")
    assert "(8*s27, ?, 1)" in package_view.leaf_text(leaf)
    assert package_view.stride_texts(replace(leaf, stride_exprs=None)) == ("?", "?", "1")
    assert package_view.stride_texts(replace(leaf, strides=None)) == ()


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (Dim(static=16), "16"),
        (Dim(), "?"),
        (Dim(min=2), "2.."),
        (Dim(max=9), "..9"),
        (Dim(expr=parse_expr("s77")), "s77"),
        (Dim(expr=parse_expr("s77"), min=2, max=64), "s77:2..64"),
        (Dim(among=(8, 16)), "8|16"),
        (Dim(among=tuple(range(1, 30))), "one of 29 sizes"),
    ],
)
def test_dims(dim, text):
    assert package_view.dim_text(dim) == text


@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        (LeafSpec(index=0, path="p", kind="constant"), "a value baked in at export"),
        (LeafSpec(index=0, path="p", kind="constant", dtype="int"), "a value baked in at export (int)"),
        (LeafSpec(index=0, path="p", kind="unknown"), "unknown"),
        (LeafSpec(index=0, path="p", kind="tensor"), "?[…]"),
        (LeafSpec(index=0, path="p", kind="tensor", dims=(Dim(static=4),)), "?[4, …]"),
        (LeafSpec(index=0, path="p", kind="tensor", rank=0, dims=()), "?[]"),
        (LeafSpec(index=0, path="p", kind="tensor", dtype="int64", rank=2, device_type="cuda"), "int64[?, ?] cuda"),
    ],
)
def test_leaves_that_tell_little(leaf, text):
    assert package_view.leaf_text(leaf) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (PlainValue(type="None", text="None"), "None"),
        (PlainValue(type="int", text="3"), "int 3"),
        (PlainValue(type="ndarray", text="", dtype="float32", shape=(2, 3)), "ndarray float32[2, 3]"),
        (PlainValue(type="ndarray", text=""), "ndarray ?[]"),
        (builders.tensor(), "float32[4, 16] (16, 1) cpu"),
        (
            builders.tensor(conj=True, neg=True, quantized=True, subclass="Parameter"),
            "float32[4, 16] (16, 1) cpu conj, neg, quantized, Parameter",
        ),
        (builders.tensor(stride=None, layout="sparse_coo", device="cuda:1"), "float32[4, 16] cuda:1 sparse_coo"),
        (
            builders.tensor(stats=ValueStats(low=0, high=1, nan=2, inf=1, zeros=0)),
            "float32[4, 16] (16, 1) cpu 2 NaN, 1 Inf",
        ),
        (builders.tensor(stats=ValueStats(low=0, high=1, nan=0, inf=0, zeros=0)), "float32[4, 16] (16, 1) cpu"),
    ],
)
def test_what_was_passed(value, text):
    assert package_view.value_text(value) == text


@pytest.mark.parametrize(
    ("shape", "stride", "ordinary"),
    [
        ((4, 16), (16, 1), True),
        ((4, 16), (1, 4), False),
        ((4, 1), (1, 77), True),
        ((4, 16), None, True),
        ((4, 0), (1, 1), True),
    ],
)
def test_ordinary_strides(shape, stride, ordinary):
    assert package_view.is_ordinary(builders.tensor(shape=shape, stride=stride)) is ordinary


def test_outputs_and_constants_of_unknown_sizes():
    assert package_view.output_text(OutputSpec(index=0, path="result")) == "?[…]"
    bare = replace(builders.CONTRACT.constants[0], shape=None, stride=None, dtype=None, device_type=None)
    assert package_view.constant_text(bare) == "?[…]"
    assert package_view.constant_text(builders.CONTRACT.constants[0]) == "float32[8, 16] (16, 1) cpu"


@pytest.mark.parametrize(
    ("fact", "line", "text"),
    [
        ("statement", 0, "2 statements of the body may contain any fact; int x"),
        ("input", 7, "2 statements of the body may contain a fact of kind 'input'; line 7: int x"),
    ],
)
def test_statements_that_were_not_understood(fact, line, text):
    unread = Unread(part="body", fact=fact, count=2, line=line, example="int\n x")
    assert package_view.unread_text(unread) == text


def test_a_case_in_one_line():
    case = builders.inspected().case
    assert package_view.contract_summary(case).endswith(" with 1 model: 3 inputs, 1 output, 2 constants on cpu")
    assert package_view.contract_summary(replace(case, contract=None)).endswith("no contract can be read from it")


def test_needs_of_a_gpu_package():
    code = tuple(f"sm_{at}" for at in range(10))
    needs = replace(
        builders.CONTRACT.needs, march_native=True, gpu_code=code, baked_threads={"cpp_fused_0": 4}, cxx11_abi=False
    )
    rows = dict(package_view.needs_rows(replace(builders.CONTRACT, needs=needs)))
    assert rows["GPU code"] == ", ".join(code[:8]) + " and 2 more"
    assert rows["CPU instructions"] == "avx512 (built with -march=native)"
    assert (rows["threads baked in"], rows["C++11 ABI"]) == ("cpp_fused_0 4", "no")
    assert "custom operators" not in rows
