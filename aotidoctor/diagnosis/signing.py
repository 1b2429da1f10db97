"""Add the fingerprint to a report.

Separate from ``failure_signature``, which a report without a failure does not import.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aotidoctor.model.evidence import Severity

if TYPE_CHECKING:
    from aotidoctor.model.report import Report


def with_fingerprint(report: Report) -> Report:
    """Add both fingerprints to ``report``, where it has a failure."""
    if not report.diagnoses and all(item.severity is not Severity.ERROR for item in report.findings):
        return report
    from aotidoctor.diagnosis.failure_signature import fingerprint

    made = fingerprint(report.diagnoses, report.findings, report.runs, report.localization, report.log)
    return replace(report, fingerprint=made, signature=made.exact)
