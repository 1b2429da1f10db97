"""What ``inspect`` and ``env`` show besides the golden files: what is odd, what is long, and what is missing."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from aotidoctor.model.artifact import DebugFeatures, ExternNode
from aotidoctor.model.contract import Unread
from aotidoctor.reports.terminal import terminal_report as terminal
from tests.unit.reports import builders


def shown(detail=0, *, findings=(), contract=builders.CONTRACT, **changes):
    base = builders.inspected()
    report = replace(base, findings=findings, case=replace(base.case, contract=contract, **changes))
    return " ".join(terminal.plain_terminal_text(report, width=160, detail=detail).split())


def with_model(**changes):
    model = replace(builders.MODEL, **changes)
    return {"model": model, "artifact": replace(builders.ARTIFACT, models=(model,))}


def with_contract(**changes):
    return {"contract": replace(builders.CONTRACT, **changes)}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"contract": None}, "not readable from this file without running it"),
        (with_model(wrapper_cpp=None), "0 files, no wrapper.cpp"),
        (
            with_model(shared_objects=(replace(builders.SO, features=DebugFeatures(input_checks=True, printer_level=0)),)),
            "input checks yes, value printer no",
        ),
        (with_model(shared_objects=(replace(builders.SO, problem="cut off", bits=None),)), "elf, x86_64, 68.4 KiB, cut off"),
        (
            with_model(extern_nodes=(ExternNode(name="n", target="my::op", argument_names=(), output_kinds=()),)),
            "custom or extern my::op",
        ),
        (with_contract(leaves=(replace(builders.X, used=False),)), "arg3_1 no"),
        (with_contract(symbols=(replace(builders.CONTRACT.symbols[0], appears_in=()),)), "s77 arg3_1_size[0] Outputs"),
        (with_contract(unknown_lines=2), "2 statements of the wrapper not understood"),
        (
            with_contract(unread=(Unread(part="body", fact="statement", count=1, line=7, example="x();"),)),
            "1 statement of the body may contain any fact; line 7: x();",
        ),
        (with_contract(problems=("two\nreadings",)), "two readings"),
    ],
)  # fmt: skip
def test_what_is_odd_is_told(changes, text):
    assert text in shown(**changes)
    assert text not in shown()


def test_what_is_not_there_has_no_heading():
    text = shown(contract=replace(builders.CONTRACT, constants=(), kernels=(), outputs=()))
    assert not re.search("Constants|Calls, in order|Outputs", text)
    assert re.search("Constants.*Calls, in order", shown())


@pytest.mark.parametrize(("detail", "cut"), [(0, True), (1, False)])
def test_long_lists_are_cut_and_counted(detail, cut):
    constants = tuple(replace(builders.CONTRACT.constants[0], original_fqn=f"w{at}") for at in range(23))
    text = shown(detail, contract=replace(builders.CONTRACT, constants=constants, kernels=()))
    assert ("and 3 more (-v shows all)" in text) is cut
    assert ("w22" in text) is not cut
    assert "w19" in text


def test_findings_go_first():
    finding = builders.misleading().findings[0]
    text = shown(findings=(finding, replace(finding, message="its own words")))
    assert "AD-IN-010 dtype: int32, expected int64" in text
    assert "AD-IN-010 dtype: its own words" in text
    assert text.index("Findings") < text.index("Archive")


def test_one_model_of_several_is_the_one_that_is_loaded():
    other = replace(builders.MODEL, name="other")
    text = shown(artifact=replace(builders.ARTIFACT, models=(builders.MODEL, other)))
    assert "Model model (this one is loaded)" in text
    assert "Model other (this one is loaded)" not in text
    assert "(this one is loaded)" not in shown()
