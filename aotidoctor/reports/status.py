"""The exit status, in one place and the same for every format."""

from __future__ import annotations

from aotidoctor.model import interruption
from aotidoctor.model.report import Report

OK = 0
PROBLEM = 1
USAGE = 2
UNKNOWN = 3
CANNOT_EXAMINE = 4
INTERNAL_ERROR = 5
OUT_OF_TIME = 6
INTERRUPTED = 130

FAIL_ON = ("info", "warn", "error", "never")


def exit_status(report: Report, fail_on: str) -> int:
    """The exit status of ``report``; ``fail_on`` is one of ``FAIL_ON``.

    What kept the examination from its end comes first, because the rest is then partial. Findings decide between 0
    and 1 by their severity, never by the rank of the diagnosis that uses them. ``never`` silences findings and
    failures, not an examination that did not take place.
    """
    if report.internal_error is not None:
        return INTERNAL_ERROR
    if report.interrupted:
        return interruption.status(INTERRUPTED)
    if report.cannot_examine is not None:
        return CANNOT_EXAMINE
    if report.out_of_time:
        return OUT_OF_TIME
    if fail_on == "never":
        return OK
    if report.verdict == "unknown":
        return UNKNOWN
    threshold = FAIL_ON.index(fail_on)
    return PROBLEM if any(finding.severity.rank >= threshold for finding in report.findings) else OK
