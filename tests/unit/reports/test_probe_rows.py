"""The table of probes in each format."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from aotidoctor.model.evidence import Evidence, RunSource, Severity
from aotidoctor.reports import markdown
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.page.run_page import probe_rows, probes_verdict
from aotidoctor.reports.terminal import terminal_report as terminal
from tests.unit.reports import builders

TABLE = Evidence(
    code="AD-RUN-029",
    kind="vanishes-blocking",
    severity=Severity.ERROR,
    subject=None,
    observed="gone with blocking launches, a race or a missing ordering: plain_run 3 of 3, cuda_blocking 0 of 3",
    expected="the same outcome in all runs",
    source=RunSource(run="R1", stream="result"),
    facts={
        "rungs": ("plain_run", "cuda_blocking", "launch_trace"),
        "runs": (3, 3, 1),
        "failed": (3, 0, 1),
        "seen": ("cuda-illegal-access", "", "cuda-illegal-access"),
        "places": ("", "", "triton_poi_fused_add_0"),
        "took_effect": (True, True, None),
    },
    id="E9",
)


@pytest.fixture
def report():
    made = builders.unknown()
    return replace(made, findings=(*made.findings, TABLE))


def test_a_row_says_how_often_how_and_where(report):
    assert probe_rows(report) == [
        ("plain_run", "3 of 3", "cuda-illegal-access", "", ""),
        ("cuda_blocking", "0 of 3", "", "", "yes"),
        ("launch_trace", "1 of 1", "cuda-illegal-access", "triton_poi_fused_add_0", "unknown"),
    ]
    assert probes_verdict(report) == "gone with blocking launches, a race or a missing ordering"


def test_people_see_the_table(report):
    for text in (markdown.render_markdown(report), terminal.plain_terminal_text(report, width=110)):
        assert "Probes: gone with blocking launches" in text
        assert "0 of 3" in text


def test_programs_get_the_columns(report):
    found = next(item for item in json.loads(json_.render_json(report))["findings"] if item["code"] == "AD-RUN-029")
    assert found["facts"]["failed"] == [3, 0, 1]
    assert found["facts"]["rungs"][1] == "cuda_blocking"


def test_without_a_table_there_is_no_section():
    assert probe_rows(builders.unknown()) == []
    assert "Probes: " not in markdown.render_markdown(builders.unknown())
