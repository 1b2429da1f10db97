"""The table of outputs in the formats for people, and in the JSON report."""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.model.localization import Localization, OutputComparison
from aotidoctor.reports.markdown import render_markdown as markdown
from aotidoctor.reports.page.place_page import COMPARISON_HEADINGS, comparison_reasons, comparison_rows
from aotidoctor.reports.terminal.terminal_report import plain_terminal_text
from tests.unit.cli.test_compare import WRONG
from tests.unit.reports import builders

AGREES = OutputComparison(path="result[1]", verdict="agrees", dtype="int64", reference_dtype="int64")


def report(*outputs, command="compare"):
    return builders.report(command=command, localization=Localization(comparison=outputs))


def cells(*outputs):
    return dict(zip(COMPARISON_HEADINGS, comparison_rows(report(*outputs))[0], strict=True))


def test_a_row_has_both_errors():
    row = cells(WRONG)
    assert (row[""], row["Output"], row["Verdict"]) == ("x", "result[0]", "package-wrong")
    assert (row["max diff"], row["eps"], row["ref. eps"], row["beyond"]) == ("0.5", "4e+03", "0.5", "3/32")
    assert (row["Values"], row["relative"], row["NaN/Inf"]) == ("float32[4, 8]", "inf", "")


def test_both_sides_are_shown_where_they_differ():
    row = cells(replace(WRONG, dtype="float16", nan=2, reference_inf=1))
    assert (row["Values"], row["NaN/Inf"]) == ("float16[4, 8] for float32[4, 8]", "2/0 for 0/1")


def test_run_shows_the_table_only_where_something_differs():
    assert comparison_rows(report(AGREES, command="run")) == []
    assert len(comparison_rows(report(AGREES, WRONG, command="run"))) == 2
    assert len(comparison_rows(report(AGREES))) == 1
    assert comparison_rows(builders.healthy()) == []


def test_a_reason_is_told_once():
    odd = replace(WRONG, verdict="unknown", reason="there is no float64 run: random")
    shown = report(odd, replace(odd, path="result[2]"))
    assert comparison_reasons(shown) == ["there is no float64 run: random"]
    assert (
        markdown(shown).count("there is no float64 run")
        == plain_terminal_text(shown).count("there is no float64 run")
        == 1
    )


def test_verdicts_are_whole_at_80_columns():
    text = plain_terminal_text(report(WRONG, replace(AGREES, verdict="reference-imprecise")), width=80)
    assert "package-wrong" in text
    assert "reference-imprecise" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "relative" not in text
    assert "relative" in plain_terminal_text(report(WRONG), width=140)


def test_markdown_has_the_table():
    text = markdown(report(WRONG, AGREES))
    assert "### Against the reference" in text
    assert "| `x` | `result[0]` | `package-wrong` |" in text
