"""The formats of a fleet: what they hold, and that no name in it does anything."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import html5lib
import jsonschema
import pytest

pytest.importorskip("pandas", reason="pandas is not installed (pip install 'aotidoctor[fleet]')")

from aotidoctor.fleet.summary.summarize import read_baseline, summarize
from aotidoctor.reports.fleet import fleet_files, fleet_text
from tests.unit.fleet.fleets import failing, healthy, mixed, unexamined, write

DATA = Path(__file__).parents[2] / "data"
NASTY = (
    "</script><script>alert(1)</script>", "=cmd|' /C calc'!A0", "+1+1", "-1", "@SUM(1)", "\t=1", "\uff1d1+1", "\x1b]0;owned\x07\x1b[2J",
    "a\nb\r\nc", '"quoted",=1', "\u202egnp.exe", "|table|`code`", "<img src=x onerror=alert(1)>", "../../../etc/passwd", "a\ud800b",
)  # fmt: skip


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    base = read_baseline(write(folder / "old", mixed()[:42]))
    return summarize([write(folder / "now", mixed())], baseline=base, argv=("aotidoctor", "fleet", "now"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Every text that may be a stranger's is a nasty one."""
    results = []
    for number, nasty in enumerate(NASTY):
        more = {"labels": {nasty: nasty}, "facts": {"f": nasty}, "host": nasty, "title": nasty}
        results.append(failing(f"{nasty}{number}", "input-stride", nasty, **more))
        results.append(healthy(f"{nasty}{number}ok", labels={nasty: nasty}))
        results.append(unexamined(f"{nasty}{number}un"))
    return summarize([write(tmp_path_factory.mktemp("hostile") / "r", results)], argv=("aotidoctor", "fleet", NASTY[0]))


def every(fleet):
    yield fleet_text.render_chat_line(fleet.summary)
    yield fleet_text.render_fleet_json(fleet.summary)
    yield fleet_text.render_fleet_markdown(fleet.summary)
    yield fleet_text.fleet_terminal_text(fleet.summary, stream=io.StringIO(), environ={"COLUMNS": "100"}, detail=1)
    yield "".join(fleet_text.render_items_csv(fleet.rows()))
    yield fleet_files.render_fleet_junit(fleet.summary, fleet.rows())
    yield fleet_files.render_fleet_sarif(fleet.summary)
    yield fleet_files.render_fleet_page(fleet.summary, fleet.rows())


def test_no_control_character_is_left_anywhere(hostile):
    for text in every(hostile):
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)


def test_csv_has_no_formula_and_all_rows(hostile):
    rows = list(csv.reader(io.StringIO("".join(fleet_text.render_items_csv(hostile.rows())))))
    assert len(rows) == 1 + 3 * len(NASTY)
    assert {len(row) for row in rows} == {len(rows[0])}
    assert not [cell for row in rows[1:] for cell in row if cell.lstrip()[:1] in set("=+-@\uff1d|%")]
    assert sum(cell.startswith("'") for row in rows for cell in row) > 20


def test_html_runs_no_script_but_its_own_and_holds_every_name(hostile):
    text = fleet_files.render_fleet_page(hostile.summary, hostile.rows())
    document = html5lib.parse(text, namespaceHTMLElements=False)
    assert [
        node.tag for node in document.iter() if node.tag in ("script", "img", "iframe", "object", "link", "base")
    ] == ["link", "script"]
    assert not [name for node in document.iter() for name in node.attrib if str(name).startswith("on")]
    assert len(document.findall(".//table[@id='items-table']/tbody/tr")) == 3 * len(NASTY)


def test_markdown_links_and_mentions_nobody(hostile):
    text = fleet_text.render_fleet_markdown(hostile.summary)
    fences = re.sub(r"(?ms)^(`{3,}).*?^\1$", "", text)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", fences)
    assert "<script" not in outside
    assert not re.search(r"@\w|#\d|https?://", outside)
    assert len(text) < 65_536


def test_the_line_for_a_chat_is_one_line_without_names(hostile, fleet):
    for one in (hostile, fleet):
        text = fleet_text.render_chat_line(one.summary)
        assert text.count("\n") == 1
        assert "pt2" not in text
        assert "@" not in text.replace("@\u200b", "")
    assert fleet_text.render_chat_line(fleet.summary).startswith("NEW: 2 new clusters; 13 of 55 items failing")


def test_json_is_strict_and_has_the_numbers(fleet):
    found = json.loads(
        fleet_text.render_fleet_json(fleet.summary), parse_constant=lambda _: pytest.fail("no strict JSON")
    )
    assert found["schema"] == "aotidoctor.clusters/1"
    assert (found["items"], found["healthy"], found["failing"], found["not_examined"]) == (55, 40, 13, 2)
    assert [one["change"] for one in found["clusters"]] == ["changed", "new", "new"]
    assert found["news"] == [one["key"] for one in found["clusters"] if one["is_news"]]
    assert found["clusters"][2]["shared"][0]["of_healthy"] == 40


def test_sarif_is_valid_and_has_the_states(fleet):
    found = json.loads(fleet_files.render_fleet_sarif(fleet.summary))
    schema = next(DATA.rglob("sarif*.json"))
    jsonschema.validate(found, json.loads(schema.read_text(encoding="utf-8")))
    results = found["runs"][0]["results"]
    assert [(one["ruleId"], one["baselineState"], one["occurrenceCount"]) for one in results] == [
        ("input-stride", "updated", 6), ("input-stride", "new", 2), ("weights-not-loaded", "new", 5),
    ]  # fmt: skip


def test_junit_counts_items_by_what_is_new(fleet):
    root = ET.fromstring(fleet_files.render_fleet_junit(fleet.summary, fleet.rows()))
    suite = root.find("testsuite")
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "55", "failures": "7", "errors": "2", "skipped": "6",
    }  # fmt: skip


def test_the_terminal_names_each_cluster_with_what_sets_it_apart(fleet):
    text = fleet_text.fleet_terminal_text(fleet.summary, stream=io.StringIO(), environ={"COLUMNS": "140"})
    for wanted in (
        "host_isa is avx2: 6 of 6 here, 10 of 40 healthy",
        "modified from 2026-06-12: 5 of 5 here, 0 of 40 healthy",
    ):
        assert wanted in text
    assert "correlations" in text


def test_a_page_is_bounded_and_says_what_it_leaves_out(fleet, monkeypatch):
    monkeypatch.setattr(fleet_files, "ROWS", 20)
    text = fleet_files.render_fleet_page(fleet.summary, fleet.rows())
    document = html5lib.parse(text, namespaceHTMLElements=False)
    states = [row[2].text for row in document.findall(".//table[@id='items-table']/tbody/tr")]
    assert states == ["failing"] * 13 + ["unexamined"] * 2 + ["healthy"] * 5
    assert "35 more items are not on this page" in text


def test_over_time_there_are_bars_as_high_as_the_counts(tmp_path):
    folders = [
        write(
            tmp_path / str(day),
            [failing(f"{n}", "input-stride", started=f"2026-09-0{day}T08:00:00Z") for n in range(day)],
            started=f"2026-09-0{day}T07:00:00Z",
        )
        for day in (1, 2, 4)
    ]
    found = summarize(folders)
    drawn = html5lib.parse(
        fleet_files.render_fleet_page(found.summary, found.rows()), namespaceHTMLElements=False
    ).find(".//figure")
    heights = [float(node.get("height")) for node in drawn.iter() if str(node.tag).endswith("rect")]
    assert heights == pytest.approx([heights[0], 2 * heights[0], 4 * heights[0]], abs=0.11 * 2)
