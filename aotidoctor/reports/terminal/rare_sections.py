"""Show the sections of a terminal page that few reports have: place, reference, hosts, served models, differences.

Apart from ``terminal_report``, because `check` does not load them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.text import Text

from aotidoctor.model.evidence import plural
from aotidoctor.model.fleet import Compatibility, DocumentComparison, DocumentDifference
from aotidoctor.model.report import Report
from aotidoctor.reports import localization_view, run_view
from aotidoctor.reports.localization_view import (
    COMPARISON_HEADINGS,
    STAGE_HEADINGS,
    STAGES_TITLE,
    comparison_reasons,
    comparison_rows,
    kernel_value_rows,
    stage_rows,
)
from aotidoctor.reports.terminal.terminal_layout import STYLES, Layout, capture_for_stream, capture_plain
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.model.localization import Localization


# Section "Where": culprit, timeline, native stack with source, values of kernels.
def show_place(place: Localization, out: Layout, *, detail: int) -> None:
    """Print what is known of the place; nothing where nothing is."""
    labelled = localization_view.place_rows(place)
    if labelled:
        out.title("Where")
    for label, words in labelled:
        out.row(label, words)
    calls, before = localization_view.timeline_rows(place, whole=detail > 1)
    if calls:
        out.title("Calls")
        if before:
            out.line(Text(f" {plural(before, 'call')} before these (-vv shows all)", style="dim"))
        out.table(("", "Call", "Kind", "Took", "Made of"), map(_mark_row, calls))
    whole = detail > 0
    frames = localization_view.frame_rows(place, whole=whole)
    if frames:
        out.title("Native stack")
        out.table(
            ("", "Function", "Place"), ((number, name, Text(where, style="dim")) for number, name, where in frames)
        )
    # A run that named the cause at once did not look for the place.
    excerpt = localization_view.excerpt(place) if frames or place.timeline or whole else None
    if excerpt is not None:
        out.line(Text(f" {excerpt.title}", style="dim"))
        out.block(excerpt.text)
    rows = kernel_value_rows(place.values, place.first_bad, whole=whole) if place.values else ()
    if rows:
        out.title("Values of kernels")
        out.table(rows[0], map(_mark_row, rows[1:]))
        for note in place.notes:
            out.paragraph(note, style="dim")


def _mark_row(row: Sequence[str]) -> list[Text]:
    """In red where the row has a mark."""
    return [Text(cell, style="red" if row[0] else "") for cell in row]


# Section "Against the reference". Below this width the last columns would push the others together.
_WIDE_VALUES, _NARROW = 110, 8
_COMPARISON_STYLES = {"": "", "!": "yellow", "x": "red"}


def show_stages(report: Report, out: Layout) -> None:
    """A table of the stages; columns that are empty for all of them are left out."""
    rows = stage_rows(report)
    if not rows:
        return
    out.title(STAGES_TITLE)
    parts = [at for at in range(len(STAGE_HEADINGS)) if any(row[at] for row in rows)]
    headings = [STAGE_HEADINGS[at] for at in parts]
    styled = ([Text(row[at], style=_COMPARISON_STYLES[row[0]]) for at in parts] for row in rows)
    out.table(headings, styled, whole=[heading for heading in headings if heading != "Observed"])


def show_comparison(report: Report, out: Layout) -> None:
    """A table of the outputs; columns that are empty for all of them are left out."""
    rows = comparison_rows(report)
    if not rows:
        return
    out.title("Against the reference")
    columns = len(COMPARISON_HEADINGS) if out.width >= _WIDE_VALUES else _NARROW
    parts = [at for at in range(columns) if any(row[at] for row in rows)]
    headings = [COMPARISON_HEADINGS[at] for at in parts]
    styled = ([Text(row[at], style=_COMPARISON_STYLES[row[0]]) for at in parts] for row in rows)
    # A long shape may take two lines; half a verdict is none.
    out.table(headings, styled, whole=[heading for heading in headings if heading != "Values"])
    for reason in comparison_reasons(report):
        out.paragraph(reason, style="dim")


# Packages and hosts.
_COMPAT_STYLES = {"good": "green", "bad": "red", "unsure": "yellow"}
_BY_WORD = {
    word: _COMPAT_STYLES[localization_view.COMPAT_TONES[answer]]
    for answer, word in localization_view.COMPAT_WORDS.items()
}


def show_compat(found: Compatibility, out: Layout) -> None:
    """The matrix, every answer with its reason, and what each package needs."""
    matrix = localization_view.compat_matrix(found)
    if matrix is not None:
        _compat_table(out, localization_view.COMPAT_MATRIX, *matrix)
    rows = localization_view.answer_rows(found)
    one = len({row[0] for row in rows}) == 1
    _compat_table(out, "Answers", localization_view.COMPAT_HEADINGS[one:], tuple(row[one:] for row in rows))
    for title, pairs in localization_view.needs_tables(found):
        out.title(title)
        for label, text in pairs:
            out.row(label, text)


def _compat_table(out: Layout, title: str, headings: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> None:
    out.title(title)
    styled = ([Text(cell, style=_BY_WORD.get(cell, "")) for cell in row] for row in rows)
    out.table(headings, styled, whole=("Answer",))


# A section per model of `triton`.
def show_names(report: Report, out: Layout) -> None:
    """Print the server's names of a package's tensors, if they were requested."""
    for title, rows in run_view.name_tables(report):
        out.title(title)
        listed = ([one_line(cell) for cell in row] for row in rows)
        out.table(run_view.NAME_HEADINGS, listed, whole=run_view.NAME_HEADINGS[1:3])


def show_serving(report: Report, out: Layout, *, detail: int) -> None:
    """A short table per model; notes with ``-v``."""
    hidden = 0
    everything = run_view.model_rows(report, notes=True)
    for model, whole in zip(run_view.model_rows(report, notes=detail > 0), everything, strict=True):
        hidden += len(whole.rows) - len(model.rows)
        if report.names is not None and not model.rows:
            continue
        out.title(one_line(f"{model.name} on {run_view.release_text(report)}"))
        if not model.rows:
            out.paragraph("nothing wrong found")
            continue
        rule, line, what, remedy = run_view.RULE_HEADINGS
        rows = ((Text(row.rule, style=STYLES[row.severity]), row.line, row.what, row.remedy) for row in model.rows)
        out.table(run_view.RULE_HEADINGS, rows, whole=(rule, line), ratios={what: 3, remedy: 2})
    if hidden:
        out.more(f"{plural(hidden, 'note')} without a problem")


# A comparison of two documents, for `diff`.
_LEVELS = {"decisive": "red", "relevant": "yellow", "outcome": "cyan", "minor": "dim"}
# Below this width a table would fold every cell.
_WIDE_SIDES, _UNFOLDED = 110, 80
_MOST_LISTED = 40


def difference_text(found: DocumentComparison, *, stream: TextIO, environ: Mapping[str, str], detail: int = 0) -> str:
    """``found`` as ``stream`` can show it; ``detail`` is -1 (headline), 0, or more for the minor differences."""
    return capture_for_stream(
        lambda console: _show_difference(found, Layout(console), detail),
        stream=stream,
        environ=environ,
        unfolded=_UNFOLDED,
    )


def plain_difference_text(found: DocumentComparison, *, width: int = 80, detail: int = 0) -> str:
    """``found`` without colour at a fixed width."""
    return capture_plain(lambda console: _show_difference(found, Layout(console), detail), width=width)


def _show_difference(found: DocumentComparison, out: Layout, detail: int) -> None:
    head = localization_view.difference_headline(found)
    out.headline(head)
    if detail < 0:
        return
    for side in (found.a, found.b):
        out.row(side.label, localization_view.side_text(side))
    parts = found.differences if detail > 0 else found.matters[:_MOST_LISTED]
    left = len(found.differences) - len(parts)
    if parts:
        out.title("Differences")
        if out.width >= _WIDE_SIDES:
            rows = ((item, localization_view.difference_row(item)) for item in parts)
            styled = ((Text(row[0], style=_LEVELS[item.level]), *row[1:]) for item, row in rows)
            out.table(localization_view.DIFFERENCE_HEADINGS, styled)
        else:
            _difference_list(parts, out)
    if left > 0:
        out.paragraph(f"and {plural(left, 'more difference')}; -v shows all", style="dim")
    out.blank()
    for label, words in localization_view.difference_counts(found):
        out.row(label, words)
    if detail > 0 and found.unknown:
        out.title("Unknown on one side")
        for line in found.unknown:
            out.paragraph(line, style="dim")


def _difference_list(parts: Sequence[DocumentDifference], out: Layout) -> None:
    for item in parts:
        mark, what, a, b, playbook, why = localization_view.difference_row(item)
        if item.level == "outcome":
            # What came of it needs no reason.
            out.pair(Text(f" {mark}", style=_LEVELS[item.level]), Text(f"{what}: A {a}, B {b}"))
            continue
        out.pair(Text(f" {mark or ' '}", style=_LEVELS[item.level]), Text(what, style="bold"))
        out.pair(Text("    A", style="dim"), Text(a))
        out.pair(Text("    B", style="dim"), Text(b))
        out.pair(Text("     "), Text(": ".join(words for words in (playbook, why) if words), style="dim"))
