"""The table of probes (AD-RUN-029) as rows of words: how often each failed, how, where, and if its setting acted."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.evidence import Evidence, FactValue
from aotidoctor.model.report import Report
from aotidoctor.reports.text import one_line

CODE = "AD-RUN-029"
TITLE = "Probes"
HEADINGS = ("Probe", "Failed", "How", "Where", "Setting acted")
_ACTED = {True: "yes", False: "no", None: "unknown"}


def probe_rows(report: Report) -> list[tuple[str, ...]]:
    """One row per probe in the order of the ladder; empty where there is no such table."""
    found = next((item for item in report.findings if item.code == CODE), None)
    return [] if found is None else _rows(found)


def verdict(report: Report) -> str:
    """What the pattern says, in words."""
    found = next((item for item in report.findings if item.code == CODE), None)
    return "" if found is None else one_line(found.observed.partition(": ")[0])


def _rows(found: Evidence) -> list[tuple[str, ...]]:
    columns = [_column(found.facts.get(name)) for name in ("rungs", "failed", "runs", "seen", "places", "took_effect")]
    return [
        (
            str(probe),
            f"{failed} of {runs}",
            one_line(str(seen), 120),
            one_line(str(place), 120),
            # The plain run changes nothing.
            "" if probe == "plain_run" else _ACTED.get(acted, "unknown"),
        )
        for probe, failed, runs, seen, place, acted in zip(*columns, strict=False)
    ]


def _column(value: FactValue) -> Sequence[str | int | float | bool | None]:
    return value if isinstance(value, tuple) else ()
