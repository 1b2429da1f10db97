from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.reports import markdown
from aotidoctor.reports.markdown import cell, code, fence, length, prose
from tests.unit.reports import builders

FENCE = re.compile(r"^(`{3,})[a-z]*\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def outside_code(text):
    """What a Markdown reader sees as Markdown and HTML."""
    return INLINE.sub("CODE", FENCE.sub("FENCE", text))


@pytest.mark.parametrize("name", [*builders.GOLDEN, "hostile"])
def test_nothing_of_others_is_read_as_markup(name):
    report = builders.hostile() if name == "hostile" else builders.GOLDEN[name]()
    rest = outside_code(markdown.render_markdown(report))
    assert "<script" not in rest
    assert not re.search(r"(?<!\\)\[link", rest)
    assert "@everyone" not in rest
    assert rest.count("<details>") == rest.count("</details>")
    assert "\x1b" not in rest
    assert "`" not in rest.replace("\\`", "")


def test_rows_of_a_table_have_equal_cells():
    text = markdown.render_markdown(builders.hostile())
    for block in re.findall(r"(?:^\|.*\n)+", FENCE.sub("", text), re.MULTILINE):
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(counts) == 1, block


def test_command_and_version_are_stated():
    text = markdown.render_markdown(builders.misleading())
    assert "aotidoctor run model.pt2 --inputs sample.pt" in text
    assert "aotidoctor 0.1.0" in text


def huge():
    base = builders.hostile()
    noise = "".join(f"line {number} ``````{'x' * 90}\n" for number in range(400))
    runs = tuple(replace(base.runs[0], id=f"R{n}", stdout_tail=noise, stderr_tail=noise) for n in range(60))
    one = Evidence(
        code="AD-IN-010",
        kind="k",
        severity=Severity.ERROR,
        subject="`|" * 400,
        observed="<b>" * 400,
        expected="&" * 400,
    )
    findings = tuple(replace(one, id=f"E{n}") for n in range(500))
    leaves = tuple(replace(builders.X, path=f"args[{n}]") for n in range(2000))
    contract = replace(builders.CONTRACT, leaves=leaves)
    return replace(base, runs=runs, findings=findings, case=replace(base.case, contract=contract))


def test_a_huge_report_fits_an_issue_and_counts_what_is_cut():
    text = markdown.render_markdown(huge())
    assert length(text) < 65_536
    assert re.search(r"and \d+ more", text)
    rest = outside_code(text)
    assert rest.count("<details>") == rest.count("</details>")
    assert "aotidoctor run model.pt2" in text


@given(st.text(alphabet="`a \n<>|&\\~[]()!@#\x1b\x00", max_size=60))
def test_code_and_fences_hold_anything(text):
    block = fence(text)
    assert len(FENCE.findall(block)) == 1
    assert FENCE.sub("", block) == ""
    for inline in (code(text), cell(text)):
        assert "\n" not in inline
        assert not inline or INLINE.sub("", inline) == ""
    assert "|" not in cell(text)
    assert not re.search(r"<|(?<!\\)[`|\[\]]", prose(text).replace("\\\\", ""))
