"""Markdown of the place of a failure, and of outputs against the reference's."""

from __future__ import annotations

from aotidoctor.model.localization import Localization
from aotidoctor.model.report import Report
from aotidoctor.reports import place_view
from aotidoctor.reports.comparison_view import HEADINGS, comparison_rows, reasons
from aotidoctor.reports.markdown.budget import Budget, cells, section
from aotidoctor.reports.markdown.text import code, fence, prose
from aotidoctor.reports.value_table import value_rows


def place_sections(report: Report, budget: Budget) -> list[str]:
    """Where it is: culprit and chain, the calls that led to it, the native stack, the values of kernels."""
    place = report.localization
    if place is None:
        return []
    known = "\n".join(f"- **{label}:** {code(text, 600)}" for label, text in place_view.place_rows(place))
    entries, _ = place_view.timeline_rows(place, whole=True)
    calls = cells(entries[-budget.rows :], budget)
    frames = cells(place_view.frame_rows(place, whole=True), budget)
    shown = place_view.excerpt(place)
    sections = [
        f"### Where\n\n{known}" if known else "",
        section("Calls", ("", "Call", "Kind", "Took", "Made of"), calls, budget),
        section("Native stack", ("", "Function", "Place"), frames, budget),
        f"{code(shown.title)}\n\n{fence(shown.text, language='cpp', budget=budget.printed)}"
        if shown is not None
        else "",
        _values(place, budget),
    ]
    return [section for section in sections if section]


def _values(place: Localization, budget: Budget) -> str:
    rows = value_rows(place.values, place.first_bad)
    return section("Values of kernels", rows[0], cells(rows[1:], budget), budget) if rows else ""


def comparison_section(report: Report, budget: Budget) -> str:
    """The outputs against the reference's."""
    shown = section("Against the reference", HEADINGS, cells(comparison_rows(report), budget), budget)
    return "\n\n".join(part for part in (shown, *(prose(text) for text in reasons(report) if shown)) if part)
