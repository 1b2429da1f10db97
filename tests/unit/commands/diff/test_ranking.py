"""Works there, fails here: what was diagnosed only on one side comes first."""

from __future__ import annotations

import io
from dataclasses import replace

from aotidoctor.reports import markdown as difference_markdown
from aotidoctor.reports.page import compared_page
from aotidoctor.reports.terminal.terminal_layout import sections_text
from tests.unit.commands.diff.documents import compared, source, told
from tests.unit.reports import builders
from tests.unit.reports.test_issue import assert_sound


def test_the_diagnosed_difference_is_first_and_names_its_evidence():
    fails = builders.misleading()
    host = replace(builders.HOST, machine="aarch64")
    fails = replace(fails, case=replace(fails.case, host=host))
    found = compared(builders.healthy(), fails)
    first, second = found.differences[:2]
    assert (first.subject, first.a, first.b) == ("kwargs['ids']: dtype", "int64", "int32")
    assert (first.playbook, first.diagnosed, first.evidence) == ("input-dtype", "B", ("E1", "E2"))
    assert "AD-IN-010" in first.codes
    assert (second.subject, second.playbook, second.diagnosed) == ("machine", "platform-mismatch", "")
    assert [item.rank for item in found.differences] == list(range(1, len(found.differences) + 1))
    assert found.differences.index(first) < found.differences.index(second)


def test_the_other_way_round_is_the_same():
    one = compared(builders.healthy(), builders.misleading())
    two = compared(builders.misleading(), builders.healthy())
    assert {name: (b, a) for name, (a, b) in told(one).items()} == told(two)
    assert [item.subject for item in one.differences] == [item.subject for item in two.differences]
    assert two.differences[0].diagnosed == "A"


def test_levels_are_in_order():
    order = [item.level for item in compared(builders.healthy(), builders.unknown()).differences]
    assert order == sorted(order, key=("decisive", "relevant", "outcome", "minor").index)
    assert "outcome" in order


def test_the_outcome():
    said = told(compared(builders.healthy(), builders.misleading()))
    assert said["outcome: verdict"] == ("healthy", "problem")
    assert said["outcome: causes"] == ("without", "also index-out-of-range, input-dtype")
    assert said["outcome: AD-IN-010 dtype kwargs['ids']"] == ("not found", "int32")
    assert said["outcome: run plain-run"] == ("exit 0 in done", "raised RuntimeError in run1")
    assert said["outcome: signature"][1] == "sig1:input-dtype:1234abcd"


def test_ids_and_lines_of_findings_do_not_count():
    base = builders.misleading()
    later = tuple(replace(item, id=f"E{n + 5}", source=None) for n, item in enumerate(base.findings))
    moved = tuple(replace(item, evidence=("E5", "E6")) for item in base.diagnoses)
    assert compared(base, replace(base, findings=later, diagnoses=moved)).differences == ()


def test_placeholders_of_redaction_are_numbered_per_report():
    one = replace(builders.HOST, distribution="x <secret-1> <home>")
    two = replace(builders.HOST, distribution="x <secret-7> <home>")
    base = builders.healthy()
    reports = [replace(base, case=replace(base.case, host=host)) for host in (one, two)]
    assert compared(*reports).differences == ()


def test_parts_that_only_one_side_has_are_not_compared():
    found = compared(source(builders.environment(), kind="host", parts=("host",)), builders.misleading())
    assert found.differences == ()
    assert set(found.equal) == {"host"}


def test_headline_and_markdown_and_terminal():
    found = compared(builders.healthy(), builders.misleading())
    head = compared_page.difference_headline(found)
    assert head.word == "DIFFERENT"
    assert "A works, B fails (input-dtype)" in head.text
    assert "first: kwargs['ids']: dtype" in head.text
    assert "1 difference that matters (7 in the outcome)" in head.text
    text = difference_markdown.render_difference_markdown(found)
    assert_sound(text)
    assert "| `✗` |" in text
    assert "input-dtype" in text
    for width in (80, 140):
        parts = compared_page.difference_sections(found, detail=0)
        shown = sections_text(parts, stream=io.StringIO(), environ={"COLUMNS": str(width)}, first=head)
        assert "input-dtype" in shown
        assert max(map(len, shown.splitlines())) <= width
    same = compared(builders.healthy(), builders.healthy())
    assert compared_page.difference_headline(same).word == "SAME"
    assert_sound(difference_markdown.render_difference_markdown(same))


def test_where_only_the_outcome_differs_the_headline_says_so():
    found = compared(builders.healthy(), replace(builders.healthy(), verdict="problem", stage="run"))
    head = compared_page.difference_headline(found)
    assert head.word == "DIFFERENT"
    assert head.text.startswith("only in the outcome (2 differences)")


def test_a_difference_of_thousands_fits_an_issue():
    nasty = "``` @everyone #1 </details> | \U0001f600" * 4
    base = builders.healthy()
    leaves = tuple(replace(builders.X, path=f"args[{n}]{nasty}") for n in range(3000))
    artifact = replace(builders.ARTIFACT, sha256=None)
    other = replace(
        base, case=replace(base.case, contract=replace(builders.CONTRACT, leaves=leaves), artifact=artifact)
    )
    text = difference_markdown.render_difference_markdown(compared(base, other))
    assert_sound(text)
    assert " more." in text
