from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.contract import Contract, KernelCall, LeafSpec
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.expr import parse_expr
from aotidoctor.model.inputs import InputSet, PlainValue
from aotidoctor.model.tree import Container, Leaf
from aotidoctor.reports import contract_view
from aotidoctor.reports.contract_view import kernel_text, leaf_rows
from tests.unit.reports import builders


def test_leaves_of_an_object_are_inside_it():
    """What cannot be seen is not missing, and the object is not one leaf too many."""
    empty = Container(type="dict", children=())
    record = Container(type="my.Record", children=(Leaf(value=0), Leaf(value=1)), keys=("x", "y"))
    leaves = tuple(
        LeafSpec(index=at, path=f"args[0].{name}", kind="tensor", input_index=at) for at, name in enumerate("xy")
    )
    args = Container(type="tuple", children=(record,))
    contract = Contract(model_name="m", source="wrapper.cpp", args=args, kwargs=empty, leaves=leaves, n_inputs=2)
    value = PlainValue(type="Record", text="my.Record(...)")
    given = Container(type="tuple", children=(Leaf(value=value),))
    inputs = InputSet(path="s.pt", format="pt", form="args", args=given, kwargs=empty)
    note = Evidence(
        code="AD-IN-002", kind="object", severity=Severity.INFO, subject="args[0]", observed="", expected=""
    )
    report = builders.report()
    report = replace(report, case=replace(report.case, contract=contract, inputs=inputs), findings=(note,))
    assert [(row.path, row.observed) for row in leaf_rows(report)] == [
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
    assert contract_view.stride_texts(leaf) == ("8*s27", "?", "1")
    assert "(8*s27, ?, 1)" in contract_view.leaf_text(leaf)
    assert contract_view.stride_texts(replace(leaf, stride_exprs=None)) == ("?", "?", "1")
    assert contract_view.stride_texts(replace(leaf, strides=None)) == ()
