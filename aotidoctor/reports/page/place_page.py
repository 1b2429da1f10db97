"""Write the sections about the place of a failure, and about outputs and stages beside the reference.

Apart from the others, because `check` does not load them: the place of a failure comes from a run. Of a long run, the
table of kernel values shows the rows around the call in question: what it read, what it wrote, and its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from aotidoctor.model.evidence import plural
from aotidoctor.model.report import Report
from aotidoctor.reports.page.blocks import (
    HTML,
    Block,
    Cell,
    DrawingBlock,
    Folded,
    NoteBlock,
    OutputBlock,
    Pairs,
    Span,
    TableBlock,
    TableLine,
    Words,
    code_words,
)
from aotidoctor.reports.page.run_page import took_text
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.model.localization import (
        BufferValues,
        Frame,
        KernelValues,
        Localization,
        OutputComparison,
        TimelineEntry,
    )

# Culprit, timeline and stack, for the section "Where".
_MOST_LISTED = 12
_FRAMES = 10
# Below this frame are only the callers of the model: the loader, Python, the program.
_MODEL = "::run_impl"
_MARK = "►"


def place_rows(place: Localization) -> list[tuple[str, str]]:
    """Labelled lines: culprit, how it was found, the blame chain, the fault address."""
    address = place.fault_address
    rows = [
        ("Culprit", place.culprit or ""),
        ("Known by", place.how if place.culprit else ""),
        ("Chain", place.chain or ""),
        ("Compiler", f"the result is right without {place.bisected}" if place.bisected else ""),
        ("Address", f"{address}: {place.fault_target}" if address and place.fault_target else address or ""),
    ]
    return [(label, one_line(text, 600)) for label, text in rows if text]


def made_of(entry: TimelineEntry) -> str:
    """Describe the origins of a kernel as far as the package records them: ``aten.add, aten.relu at model.py:7``."""
    return " ".join(part for part in (", ".join(entry.origins), f"at {entry.where}" if entry.where else "") if part)


def frame_rows(place: Localization, *, whole: bool = False) -> list[tuple[str, str, str]]:
    """Rows (number, function, place) of the native stack; in short, the telling ones: their numbers show the gaps."""
    frames = place.frames
    if not whole:
        # Down to the frame of the model, the innermost ones, but none of them in place of the package's own.
        last = next((at for at, frame in enumerate(frames) if _MODEL in (frame.function or "")), len(frames))
        own = [frame for frame in frames[: last + 1] if frame.member is not None][:_FRAMES]
        others = [frame for frame in frames[: last + 1] if frame.member is None][: _FRAMES - len(own)]
        frames = tuple(sorted((*own, *others), key=lambda frame: frame.index))
    return [(f"#{frame.index}", _function(frame.function), _place(frame)) for frame in frames]


def _function(name: str | None) -> str:
    """The name without template arguments and argument list, which take lines and tell little."""
    if name is None:
        return "?"
    short, depth = "", 0
    for letter in name.partition("(")[0] if not name.startswith("(") else name:
        depth += letter == "<"
        short += letter if depth == 0 else ""
        depth -= letter == ">" and depth > 0
    return one_line(short or name)


def excerpt(place: Localization) -> OutputBlock | None:
    """Lines of the innermost frame whose source is in the package; without a stack of the check that failed."""
    frames = (*place.frames, place.check) if place.check is not None else place.frames
    frame = next((frame for frame in frames if frame.lines), None)
    if frame is None:
        return None
    width = len(str(frame.lines[-1].number))
    lines = [f"{_MARK if line.marked else ' '} {line.number:>{width}}  {line.text}" for line in frame.lines]
    return OutputBlock(title=code_words(_place(frame)), text="\n".join(lines), language="cpp", marks=True)


def _place(frame: Frame) -> str:
    where = frame.member or frame.file or frame.library or ""
    name = where.rpartition("/")[2]
    return f"{name}:{frame.line}" if frame.line is not None and name else name


# Values of kernels: a row per tensor that a call read or wrote.
_NEIGHBOURS = 2
_CALL_MARK = "►"
_ALWAYS = ("", "Call", "Min", "Max")


def kernel_value_rows(calls: Sequence[KernelValues], culprit: str | None, *, whole: bool = False) -> list[list[str]]:
    """Headings, then rows of text. Columns that are empty in all rows are left out."""
    # The call in question and its neighbours; the first calls where none is.
    center = next((at for at, call in enumerate(calls) if call.name == culprit), 0)
    listed = calls if whole else calls[max(0, center - _NEIGHBOURS) : center + _NEIGHBOURS + 1]
    # The tensors of each call; its name stands before the first.
    rows = [
        _value_row(call.name if at == 0 else "", buffer, marked=call.name == culprit)
        for call in listed
        for at, buffer in enumerate(buffer for buffer in call.buffers if buffer.seen)
    ]
    if not rows:
        return []
    parts = [column for column in rows[0] if column in _ALWAYS or any(row[column] for row in rows)]
    return [parts, *([_value_text(row[column]) for column in parts] for row in rows)]


def _value_row(name: str, buffer: BufferValues, *, marked: bool) -> dict[str, str | float | None]:
    # An intermediate that no node has is common; it matters in the call in question only.
    compared = buffer.role == "out" and (marked or buffer.agrees is True)
    return {
        "": _CALL_MARK if marked else "",
        "Call": one_line(name),
        "Tensor": f"{buffer.role} {buffer.name}",
        "Min": buffer.low,
        "Max": buffer.high,
        "Mean": buffer.mean,
        "NaN": buffer.nan or None,
        "Inf": buffer.inf or None,
        "Off by": buffer.error if compared else None,
        "From": _closest(buffer) if compared else "",
    }


def _closest(buffer: BufferValues) -> str:
    """The node whose values it has (``= relu``), or that is closest without having them (``not add``)."""
    if buffer.matches is None or buffer.agrees is None:
        return ""
    where = f" at {buffer.where}" if buffer.where else ""
    return f"{'=' if buffer.agrees else 'not'} {buffer.matches}{where}"


def _value_text(value: str | float | None) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case _ if math.isnan(value):
            return ""
        case _:
            return f"{value:.4g}"


# Outputs against the reference's.
COMPARISON_HEADINGS = (
    *("", "Output", "Verdict", "max diff", "eps", "ref. eps"),
    *("NaN/Inf", "Values", "relative", "beyond"),
)
"""Largest difference, largest error against float64 of package and reference, largest relative difference, elements
beyond the tolerance; the most telling first."""
_COMPARISON_MARKS = {"agrees": "", "both-within": "", "reference-imprecise": "!"}
_WRONG = "x"


def comparison_rows(report: Report) -> list[tuple[str, ...]]:
    """One row per output, as in ``HEADINGS``; empty if nothing was compared, or all agrees and it was not requested.

    The mark is ``x`` for what is wrong and ``!`` for what is worth a look.
    """
    found = report.localization.comparison if report.localization is not None else ()
    if report.command != "compare" and all(item.verdict == "agrees" for item in found):
        return []
    return [
        (
            _COMPARISON_MARKS.get(item.verdict, _WRONG),
            one_line(item.path),
            item.verdict,
            _number(item.max_abs),
            _number(item.error),
            _number(item.reference_error),
            _nonfinite(item),
            _values(item),
            _number(item.max_rel),
            f"{item.far}/{item.numel}" if item.far else "",
        )
        for item in found
    ]


def comparison_reasons(report: Report) -> list[str]:
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
    text = f"{ours[0]}/{ours[1]}"
    return text if ours == theirs else f"{text} for {theirs[0]}/{theirs[1]}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


# The sections.
_TONES = {"": "", "!": "unsure", "x": "bad", "►": "bad"}


def marked_table(label: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> TableBlock:
    """A table of rows that begin with their mark."""
    lines = tuple(TableLine(tuple(map(Cell, row[1:])), _TONES[row[0]], row[0]) for row in rows)
    return TableBlock(label=label, headings=tuple(headings[1:]), rows=lines, marked=True)


def stage_blocks(report: Report, _detail: int) -> tuple[Block, ...]:
    """The stages from the model to its package, marked at the first that breaks it; empty where none was looked at."""
    rows = [
        (
            _WRONG if row.first else "",
            row.name,
            row.verdict,
            row.against or "",
            one_line(row.observed, 300) + (f" [{row.run}]" if row.run else ""),
            row.operator or "",
            row.where or "",
        )
        for row in (report.localization.stages if report.localization is not None else ())
    ]
    headings = ("", "Stage", "Verdict", "Against", "Observed", "Operator", "Where")
    table = marked_table("Whose fault", headings, rows)
    return (replace(table, sparse=True, whole=[one for one in headings if one != "Observed"]),) if rows else ()


def comparison_blocks(report: Report, _detail: int) -> tuple[Block, ...]:
    """Output by output against the reference: drawn, and as numbers."""
    rows = comparison_rows(report)
    if not rows:
        return ()
    # A long shape may take two lines; half a verdict is none. The last columns would push the others together.
    table = replace(
        marked_table("Outputs against the reference", COMPARISON_HEADINGS, rows),
        whole=[heading for heading in COMPARISON_HEADINGS if heading != "Values"],
        wide=COMPARISON_HEADINGS[8:],
        sparse=True,
        look="numbers",
        noun="more outputs",
    )
    why = (NoteBlock(words=text, tone="dim") for text in comparison_reasons(report))
    return (DrawingBlock(of="errors", formats=HTML), table, *why)


def place_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """Culprit, how it is known, chain, address; then the native stack and the source of its innermost frame."""
    place = report.localization
    if place is None:
        return ()
    rows: tuple[tuple[str, Words], ...] = tuple(
        (label, code_words(text) if label in ("Culprit", "Chain") else text) for label, text in place_rows(place)
    )
    frames = frame_rows(place, whole=detail > 0)
    # A run that named the cause at once did not look for the place.
    lines = excerpt(place) if frames or place.timeline or detail > 0 else None
    shown = tuple(map(_frame, frames))
    stack = TableBlock(label="Native stack", headings=("", "Function", "Place"), rows=shown, titled=True, heads=1)
    return (*((Pairs(rows=rows),) if rows else ()), *((lines,) if lines else ()), *((stack,) if shown else ()))


def _frame(row: tuple[str, str, str]) -> TableLine:
    number, name, where = row
    return TableLine((Cell(number, "dim", "num"), Cell(code_words(name)), Cell(code_words(where), "dim")))


def call_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """The last call of the model with the time of each of its calls, or the end of it; earlier ones folded."""
    place = report.localization
    if place is None or not place.timeline:
        return ()
    runs = [tuple(entries) for _, entries in groupby(place.timeline, key=lambda entry: entry.call)]
    last = _calls(place, runs[-1], last=True)
    if detail > 1:
        listed, before = last.rows[-_CALLS:], len(last.rows[:-_CALLS])
        earlier = runs[:-1][-4:]
    else:
        listed, earlier = last.rows[-_MOST_LISTED:], []
        before = len(place.timeline) - len(listed)
    note = f"{plural(before, 'call')} before these{'' if detail > 1 else ' (-vv shows all)'}"
    traced = f"{place.calls_total:,} calls of all kinds were traced; these are the ones that compute"
    return (
        *((NoteBlock(words=note, tone="dim"),) if before else ()),
        replace(last, rows=listed),
        *((NoteBlock(words=traced, tone="dim", formats=HTML),) if place.calls_total > len(place.timeline) else ()),
        *(
            Folded(
                summary=f"Call {entries[0].call} of the model: {plural(len(entries), 'call')}",
                blocks=(_calls(place, entries, last=False),),
            )
            for entries in earlier
        ),
    )


def _calls(place: Localization, entries: Sequence[TimelineEntry], *, last: bool) -> TableBlock:
    """The calls with when each ran within the call of the model; the last one has no end."""
    total = sum(entry.seconds or 0.0 for entry in entries)
    begin, lines = 0.0, []
    for at, entry in enumerate(entries):
        final = last and at == len(entries) - 1
        left = 100 * begin / total if total > 0 else 0.0
        width = 100 * (entry.seconds or 0.0) / total if total > 0 else 0.0
        bar = Span(f"{min(left, 99.0):.1f} {width:.1f}", "bar" if entry.seconds is not None else "bar open")
        # What is to be said of a call beside its name.
        if entry.state == "entered":
            sign = "never returned"
        elif entry.name == place.first_bad:
            sign = "first bad values"
        else:
            sign = "culprit" if final and entry.name == place.culprit else ""
        name = (Span(entry.name, "code"), *((Span(" "), Span(sign, "tag")) if sign else ()))
        cells = (
            Cell(str(at), "dim", "num"),
            Cell(name),
            Cell(entry.kind, "dim"),
            Cell(took_text(entry.seconds), look="num"),
            Cell((bar,), look="when"),
            Cell(made_of(entry), "dim"),
        )
        lines.append(TableLine(cells, "bad" if sign else "", _MARK if sign else ""))
        begin += entry.seconds or 0.0
    return TableBlock(
        label=f"Call {entries[0].call} of the model",
        headings=("#", "Call", "Kind", "Took", "When", "Made of"),
        rows=tuple(lines),
        marked=True,
        columns_of={"#": HTML, "When": HTML},
        look="calls",
        heads=1,
    )


_CALLS = 300


def value_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """The drawing of ranges and errors, the table of the same numbers, and what was left out."""
    place = report.localization
    if place is None or not place.values:
        return ()
    rows = kernel_value_rows(place.values, place.first_bad, whole=detail > 0)
    drawing = DrawingBlock(of="values", formats=HTML)
    if not rows:
        return (drawing,)
    table = replace(marked_table("Values of kernels", rows[0], rows[1:]), look="numbers")
    return (drawing, table, *(NoteBlock(words=note, tone="dim") for note in place.notes[:20]))


PLACE: Mapping[str, Callable[[Report, int], tuple[Block, ...]]] = {
    "stages": stage_blocks,
    "comparison": comparison_blocks,
    "where": place_blocks,
    "calls": call_blocks,
    "values": value_blocks,
}
"""The functions of the sections, by their name on the page."""
