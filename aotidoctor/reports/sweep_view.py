"""A sweep as lines: what each row says, in words, and the summary above them. Text and Markdown are made here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from aotidoctor.model.phrases import plural
from aotidoctor.model.sweep import Does, Judged, Sweep, SweepRow
from aotidoctor.reports.json.artifact import picked
from aotidoctor.reports.markdown.text import cell, prose, table
from aotidoctor.reports.text import one_line

SCHEMA = "aotidoctor.sweep/1"
MEANINGS: Mapping[Judged, str] = {
    Judged.FAULT: "the contract accepts it, the program computes it, the package fails or is wrong",
    Judged.UNGUARDED: "the package silently computes wrong numbers or what the program refuses, or it crashes",
    Judged.REFUSED: "the package raises an error where the program computes a result",
    Judged.HARMLESS: "outside the contract, but the package is right",
    Judged.FINE: "contract, package and program agree",
    Judged.UNKNOWN: "the program refuses what the package computes, so its result could not be checked",
}
_HEADINGS = ("Meaning", "Subject", "Change", "Contract", "Package", "With checks", "Program")
# Below the table: nobody reads more on a terminal.
_SHOWN = 60


def counts(found: Sweep) -> Mapping[Judged, int]:
    """How many rows there are of each meaning, worst first."""
    seen = Counter(row.judged for row in found.rows)
    return {judged: seen[judged] for judged in Judged if seen[judged]}


def headline(found: Sweep) -> str:
    """One sentence: what was tried, and what came of it."""
    told = ", ".join(f"{count} {judged.value}" for judged, count in counts(found).items())
    against = f" against {one_line(found.reference)}" if found.reference is not None else ""
    return f"{len(found.rows)} of {found.planned} calls of {one_line(found.package)}{against}: {told or 'none made'}"


def cells(row: SweepRow) -> tuple[str, ...]:
    """The texts of a row, in the order of the headings."""
    says = f"{row.says.value}: {row.cause}" if row.cause is not None else row.says.value
    return (
        row.judged.value,
        row.subject,
        row.change or "nothing changed",
        says,
        _told(row.package, row.detail),
        row.checked.value if row.checked is not None else "",
        _told(row.program, row.program_detail),
    )


def _told(does: Does, detail: str) -> str:
    return f"{does.value}: {detail}" if detail else does.value


def ordered(rows: Sequence[SweepRow]) -> list[SweepRow]:
    """Worst first; rows of one meaning in the order in which they were asked."""
    rank = {judged: at for at, judged in enumerate(Judged)}
    return sorted(rows, key=lambda row: rank[row.judged])


def text(found: Sweep, *, detail: int = 0) -> str:
    """For a terminal. What agrees is counted only, unless ``detail`` asks for it."""
    rows = [row for row in ordered(found.rows) if detail > 0 or row.judged is not Judged.FINE]
    shown = rows if detail > 0 else rows[:_SHOWN]
    lines = [f" SWEEP  {headline(found)}", ""]
    for judged in dict.fromkeys(row.judged for row in shown):
        lines += [f" {judged.value.upper()}: {MEANINGS[judged]}"]
        lines += [_line(row) for row in shown if row.judged is judged]
        lines.append("")
    if len(rows) > len(shown):
        lines.append(f" {plural(len(rows) - len(shown), 'more row')}: -v, or --format md, json or html")
    lines += [f" Not run: {one_line(reason)}" for reason in found.unasked]
    return "\n".join(lines).rstrip() + "\n"


def _line(row: SweepRow) -> str:
    _, subject, change, says, package, checked, program = cells(row)
    known = f"; program: {one_line(program, 80)}" if row.program is not Does.UNKNOWN else ""
    with_checks = f"; with checks: {checked}" if checked else ""
    return (
        f"   {one_line(subject, 40)}: {one_line(change, 90)}\n"
        f"      contract {says}; package: {one_line(package, 120)}{with_checks}{known}"
    )


def markdown(found: Sweep) -> str:
    """The whole table."""
    lines = ["# Sweep", "", prose(headline(found)), ""]
    lines += [f"- **{judged.value}** ({count}): {MEANINGS[judged]}" for judged, count in counts(found).items()]
    lines += ["", table(_HEADINGS, [[cell(one) for one in cells(row)] for row in ordered(found.rows)]), ""]
    lines += [f"Not run: {prose(reason)}" for reason in found.unasked]
    return "\n".join(lines).rstrip() + "\n"


def document(found: Sweep) -> dict[str, object]:
    """The JSON document, but for its head."""
    return {
        **picked(found, "package reference torch planned"),
        "counts": {judged.value: count for judged, count in counts(found).items()},
        **picked(found, "rows unasked seconds"),
    }
