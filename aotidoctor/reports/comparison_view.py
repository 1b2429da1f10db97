"""The comparison with the reference as rows of text, for every format for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.report import Report
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.model.localization import OutputComparison

HEADINGS = ("", "Output", "Verdict", "max diff", "eps", "ref. eps", "NaN/Inf", "Values", "relative", "beyond")
"""Largest difference, largest error against float64 of package and reference, largest relative difference, elements
beyond the tolerance; the most telling first."""
_MARKS = {"agrees": "", "both-within": "", "reference-imprecise": "!"}
_WRONG = "x"


def comparison_rows(report: Report) -> list[tuple[str, ...]]:
    """One row per output, as in ``HEADINGS``; empty where nothing was compared, or all agrees and nobody asked.

    The mark is ``x`` for what is wrong and ``!`` for what is worth a look.
    """
    found = report.localization.comparison if report.localization is not None else ()
    if report.command != "compare" and all(item.verdict == "agrees" for item in found):
        return []
    return [_row(item) for item in found]


def _row(item: OutputComparison) -> tuple[str, ...]:
    return (
        _MARKS.get(item.verdict, _WRONG),
        one_line(item.path, 60),
        item.verdict,
        _number(item.max_abs),
        _number(item.error),
        _number(item.reference_error),
        _nonfinite(item),
        _values(item),
        _number(item.max_rel),
        f"{item.far}/{item.numel}" if item.far else "",
    )


def reasons(report: Report) -> list[str]:
    """Why a verdict is unknown, once for all outputs that share it."""
    found = report.localization.comparison if report.localization is not None else ()
    return list(dict.fromkeys(one_line(item.reason, 300) for item in found if item.reason))


def _values(item: OutputComparison) -> str:
    """``float32[4, 16]``; both where they differ."""
    ours = f"{item.dtype}[{', '.join(map(str, item.shape))}]" if item.dtype else ""
    theirs = f"{item.reference_dtype}[{', '.join(map(str, item.reference_shape))}]" if item.reference_dtype else ""
    return ours if ours == theirs or not theirs else f"{ours} for {theirs}"


def _nonfinite(item: OutputComparison) -> str:
    """Counts of the package, and of the reference where those differ; nothing where there are none."""
    ours, theirs = (item.nan, item.inf), (item.reference_nan, item.reference_inf)
    if not any((*ours, *theirs)):
        return ""
    told = f"{ours[0]}/{ours[1]}"
    return told if ours == theirs else f"{told} for {theirs[0]}/{theirs[1]}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
