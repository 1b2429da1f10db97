"""No document is above 8 MB, whatever a stranger's package or log puts into a report; what was cut is counted."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.reports import text as size
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.json.schema import schema
from aotidoctor.reports.text import CODE, limit_report
from tests.unit.reports import builders
from tests.unit.reports.test_controls import FORMATS

# The same with a smaller limit takes less of the tests' time.
MOST = 1 << 18


@pytest.fixture(autouse=True)
def _smaller(monkeypatch):
    assert size.MOST_BYTES == 8 << 20
    monkeypatch.setattr(size, "MOST_BYTES", MOST)


def finding(number, message="m"):
    return Evidence(
        id=f"check-{number}", code="AD-X", kind="check", severity=Severity.WARN, subject=f"args[{number}]",
        observed="1", expected="2", message=message, source=None,
    )  # fmt: skip


def many_findings(report):
    return replace(report, findings=tuple(finding(number, "m" * 300) for number in range(1_500)))


def long_text(report):
    return replace(report, findings=(finding(1, "é" * 300_000),))


def wide_contract(report):
    leaf = replace(builders.X, path="args[0]" * 200)
    contract = replace(report.case.contract, leaves=(leaf,) * 300)
    return replace(report, case=replace(report.case, contract=contract))


@pytest.mark.parametrize("grown", [many_findings, long_text, wide_contract], ids=lambda grown: grown.__name__)
@pytest.mark.parametrize("kind", ["json", "md", "html", "sarif", "junit", "github"])
def test_a_document_is_bounded(kind, grown):
    report = grown(replace(builders.GOLDEN["bad_inputs"](), command="inspect"))
    text = limit_report(report, FORMATS[kind])
    assert len(text.encode()) <= MOST


@pytest.mark.parametrize("grown", [many_findings, long_text, wide_contract], ids=lambda grown: grown.__name__)
def test_what_is_cut_is_said(grown):
    report = grown(replace(builders.GOLDEN["bad_inputs"](), command="inspect"))
    assert len(json_.render_json(report)) > MOST
    document = json.loads(limit_report(report, json_.render_json))
    jsonschema.validate(document, schema())
    (said,) = [item for item in document["not_checked"] if item["code"] == CODE]
    assert said["name"] == "report"
    assert ("findings" in said["reason"]) == (grown is not wide_contract)
    assert document["verdict"] == report.verdict


def test_nothing_is_cut_from_an_ordinary_report():
    seen = []
    report = builders.GOLDEN["bad_inputs"]()
    assert limit_report(report, lambda given: seen.append(given) or "text") == "text"
    assert seen == [report]
    assert seen[0] is report
