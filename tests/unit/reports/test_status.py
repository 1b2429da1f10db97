from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.evidence import Severity
from aotidoctor.reports.text import FAIL_ON, exit_status
from tests.unit.reports import builders

HEALTHY, MISLEADING, UNKNOWN = builders.healthy(), builders.misleading(), builders.unknown()


def with_severity(severity):
    report = builders.misleading()
    return replace(report, findings=tuple(replace(item, severity=severity) for item in report.findings))


@pytest.mark.parametrize(
    ("report", "fail_on", "expected"),
    [
        (HEALTHY, "error", 0),
        (HEALTHY, "info", 0),
        (MISLEADING, "error", 1),
        (MISLEADING, "info", 1),
        (MISLEADING, "never", 0),
        (UNKNOWN, "error", 3),
        (UNKNOWN, "never", 0),
        (with_severity(Severity.WARN), "error", 0),
        (with_severity(Severity.WARN), "warn", 1),
        (with_severity(Severity.INFO), "warn", 0),
        (with_severity(Severity.INFO), "info", 1),
        (builders.wrong_kind(), "error", 1),
        (replace(HEALTHY, cannot_examine="no such file"), "error", 4),
        (replace(MISLEADING, out_of_time=True), "error", 6),
        (replace(MISLEADING, interrupted=True), "error", 130),
        (replace(UNKNOWN, interrupted=True, out_of_time=True), "never", 130),
        (replace(MISLEADING, internal_error="Traceback", interrupted=True), "never", 5),
    ],
)
def test_exit_status(report, fail_on, expected):
    assert exit_status(report, fail_on) == expected


def test_the_rank_of_a_diagnosis_does_not_decide():
    report = builders.misleading()
    swapped = tuple(reversed(report.diagnoses))
    assert exit_status(replace(report, diagnoses=swapped), "error") == exit_status(report, "error") == 1
    assert exit_status(replace(report, findings=()), "info") == 0


def test_severities_are_in_the_order_of_fail_on():
    assert [severity.value for severity in sorted(Severity, key=lambda item: item.rank)] == list(FAIL_ON[:3])
