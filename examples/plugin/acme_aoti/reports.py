"""One line for the spreadsheet."""

from __future__ import annotations

import csv
import io

from aotidoctor.model.report import Report

AOTIDOCTOR_API = 1


def render(report: Report) -> str:
    """Package, verdict, first cause."""
    stream = io.StringIO()
    cause = report.diagnoses[0].cause if report.diagnoses else ""
    csv.writer(stream).writerow([report.case.artifact.path, report.verdict, cause])
    return stream.getvalue()
