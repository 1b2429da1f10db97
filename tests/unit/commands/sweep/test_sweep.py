"""The plan of a sweep, what a row means, and how it is shown. No process."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from io import StringIO
from pathlib import Path

import html5lib
import pytest

from aotidoctor.cli import document_output
from aotidoctor.commands.sweep.planned_calls import MOST_BYTES, plan_calls
from aotidoctor.commands.sweep.run_sweep import judge_row
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import BoundCheck, Dim, LeafSpec, ModelContract
from aotidoctor.model.fleet import Does, Says, Sweep, SweepRow, SweepVerdict
from aotidoctor.model.inputs import Container, Leaf
from aotidoctor.readers.inputs.live_and_generated import describe_generated
from aotidoctor.reports.cases_and_sweeps import SWEEP_SCHEMA, sweep_document, sweep_markdown, sweep_page, sweep_text


def dim(size: str, low: int | None = None, high: int | None = None) -> Dim:
    return Dim(static=int(size)) if size.isdecimal() else Dim(min=low, max=high, expr=parse_expr(size))


def leaf(index: int, path: str, dtype: str, *dims: Dim) -> LeafSpec:
    return LeafSpec(
        index=index,
        path=path,
        kind="tensor",
        input_index=index,
        dtype=dtype,
        rank=len(dims),
        dims=dims,
        device_type="cpu",
    )


def contract(high: int = 64) -> ModelContract:
    leaves = (
        leaf(0, "args[0]", "float32", dim("s0", 2, high), dim("16")),
        leaf(1, "args[1]['b']", "float32", dim("8*s1", 16, 80)),
        leaf(2, "args[1]['a']", "int64", dim("s0", 2, high)),
        LeafSpec(index=3, path="kwargs['k']", kind="constant"),
    )
    inner = Container(type="dict", children=(Leaf(value=1), Leaf(value=2)), keys=("b", "a"))
    return ModelContract(
        model_name="model",
        source="wrapper.cpp",
        args=Container(type="tuple", children=(Leaf(value=0), inner)),
        kwargs=Container(type="dict", children=(Leaf(value=3),), keys=("k",)),
        leaves=leaves,
        n_inputs=3,
        bound_checks=(BoundCheck(kernel="k", text="", bound="100L"),),
    )


def test_a_pair_with_a_change_of_values_is_one_of_values():
    points = plan_calls(contract(), {}).points
    values = [point for point in points if "all values 100 " in point.text]
    assert {point.axis for point in values} == {"value", "pair"}
    assert all(point.of_values for point in values)
    assert not any(point.of_values for point in points if "all values" not in point.text)


def test_the_base_comes_first_and_pairs_last():
    points = plan_calls(contract(), {}).points
    assert points[0].axis == "base"
    axes = [point.axis for point in points]
    assert set(axes) == {"base", "dtype", "stride", "size", "divisibility", "rank", "value", "none", "keys", "pair"}
    assert "pair" not in axes[: axes.index("pair")]
    assert set(axes[axes.index("pair") :]) == {"pair"}
    assert [point.rank for point in points] == sorted(point.rank for point in points)


def test_sizes_at_the_bounds_and_beyond():
    texts = {
        point.text for point in plan_calls(contract(), {}).points if point.axis == "size" and point.subject == "s0"
    }
    assert {text.split()[2] for text in texts} == {"2", "64", "65", "1", "0"}
    multiples = {point.text for point in plan_calls(contract(), {}).points if point.subject == "s1"}
    assert {int(text.split()[2]) for text in multiples} >= {10, 11, 1, 0}


def test_every_document_is_one_that_the_reader_describes():
    made = contract()
    for point in plan_calls(made, {"kwargs['k']": "'mode'"}).points:
        inputs = describe_generated(made, point.document)
        assert dict(inputs.leaves())["kwargs['k']"].text == "'mode'"
    assert point.document["kwargs"] == {"k": "mode"}


def test_indices_at_the_bound_of_a_kernel():
    values = [point for point in plan_calls(contract(), {}).points if point.axis == "value"]
    assert [point.subject for point in values] == ["args[1]['a']"] * 3
    assert {point.text.split()[2] for point in values} == {"99", "100", "-1"}


def test_what_is_too_large_is_counted():
    planned = plan_calls(contract(MOST_BYTES), {})
    assert any("MiB" in reason for reason in planned.left_out)
    assert len(planned.points) < len(plan_calls(contract(), {}).points)


@pytest.mark.parametrize(
    ("told", "package", "program", "meaning"),
    [
        (Says.ACCEPTS, Does.RIGHT, Does.RIGHT, SweepVerdict.FINE),
        (Says.ACCEPTS, Does.WRONG, Does.RIGHT, SweepVerdict.FAULT),
        (Says.ACCEPTS, Does.CRASH, Does.RIGHT, SweepVerdict.FAULT),
        (Says.ACCEPTS, Does.ERROR, Does.RIGHT, SweepVerdict.FAULT),
        (Says.ACCEPTS, Does.ERROR, Does.ERROR, SweepVerdict.FINE),
        (Says.REFUSES, Does.WRONG, Does.RIGHT, SweepVerdict.UNGUARDED),
        (Says.REFUSES, Does.CRASH, Does.ERROR, SweepVerdict.UNGUARDED),
        (Says.REFUSES, Does.RETURNS, Does.ERROR, SweepVerdict.UNGUARDED),
        (Says.REFUSES, Does.ERROR, Does.RIGHT, SweepVerdict.REFUSED),
        (Says.REFUSES, Does.RIGHT, Does.RIGHT, SweepVerdict.HARMLESS),
        (Says.RANGE, Does.RIGHT, Does.RIGHT, SweepVerdict.HARMLESS),
        (Says.RANGE, Does.RETURNS, Does.ERROR, SweepVerdict.UNKNOWN),
        (Says.RANGE, Does.WRONG, Does.RIGHT, SweepVerdict.UNGUARDED),
        (Says.SILENT, Does.ERROR, Does.ERROR, SweepVerdict.FINE),
        (Says.SILENT, Does.CRASH, Does.ERROR, SweepVerdict.UNGUARDED),
        (Says.ACCEPTS, Does.RETURNS, Does.UNKNOWN, SweepVerdict.FINE),
        (Says.ACCEPTS, Does.CRASH, Does.UNKNOWN, SweepVerdict.FAULT),
        (Says.REFUSES, Does.RETURNS, Does.UNKNOWN, SweepVerdict.UNGUARDED),
        (Says.REFUSES, Does.ERROR, Does.UNKNOWN, SweepVerdict.FINE),
        (Says.RANGE, Does.RETURNS, Does.UNKNOWN, SweepVerdict.UNKNOWN),
    ],
)
def test_what_a_row_means(told, package, program, meaning):
    assert judge_row(told, package, program) is meaning


EVIL = "a\x1b[31m</td><script>alert(1)</script>|\n# x"


def found() -> Sweep:
    row = SweepRow(
        axis="stride", subject=EVIL, change=EVIL, says=Says.REFUSES, cause="input-stride", package=Does.WRONG,
        detail=EVIL, program=Does.RIGHT, judged=SweepVerdict.UNGUARDED,
    )  # fmt: skip
    fine = replace(row, axis="base", judged=SweepVerdict.FINE, package=Does.RIGHT)
    return Sweep(package="m.pt2", reference="e.pt2", rows=(fine, row), planned=9, unasked=("7 of 9",), seconds=1.0)


def text(detail: int = 0) -> str:
    return sweep_text(found(), stream=StringIO(), environ={}, detail=detail)


def test_what_a_stranger_wrote_is_neutral_in_every_form():
    page = sweep_page(found())
    tree = html5lib.HTMLParser(strict=True).parse(page)
    assert not list(tree.iter("{http://www.w3.org/1999/xhtml}script"))
    assert len([one for one in tree.iter("{http://www.w3.org/1999/xhtml}tr") if one.get("id")]) == 2
    table = [line for line in sweep_markdown(found()).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == {8}
    for shown in (page, sweep_markdown(found()), text()):
        assert "\x1b" not in shown
    told = json.loads(document_output.json_document(SWEEP_SCHEMA, sweep_document(found())))
    assert (told["schema"], told["counts"]) == ("aotidoctor.sweep/1", {"unguarded": 1, "fine": 1})
    assert told["rows"][1]["judged"] == "unguarded"


def test_what_agrees_is_counted_only():
    assert "nothing changed" not in text()
    assert text(detail=1).count("\n") > text().count("\n")


def test_what_cannot_be_swept(tmp_path: Path):
    from aotidoctor.commands.sweep.run_sweep import sweep
    from aotidoctor.model.case import Options
    from aotidoctor.model.errors import CannotExamineError

    (tmp_path / "text.pt2").write_text("no package")
    for package, reference in (("absent", None), ("text.pt2", None), ("text.pt2", str(tmp_path / "absent"))):
        with pytest.raises(CannotExamineError):
            sweep(str(tmp_path / package), Options(reference=reference), environ=os.environ)
