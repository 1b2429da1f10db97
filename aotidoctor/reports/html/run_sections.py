"""Write the sections of an HTML page about runs and the place of a failure: stack, calls, values, drawings.

The numbers of each drawing are chosen here and drawn by ``plots``, which needs matplotlib. A page without drawings is
complete: tables show the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from markupsafe import Markup

from aotidoctor.model.evidence import plural
from aotidoctor.model.localization import Localization, TimelineEntry
from aotidoctor.model.report import NOT_CONFINED, Report
from aotidoctor.model.run import Outcome
from aotidoctor.reports import localization_view, run_view
from aotidoctor.reports.html import html_blocks
from aotidoctor.reports.html.html_blocks import (
    Block,
    Cell,
    ErrorRow,
    Figure,
    Folded,
    NoteBlock,
    OutputBlock,
    Pairs,
    TableBlock,
    TableLine,
    ValueRow,
    cell,
    cut,
    mono,
    printed_block,
    texts,
)
from aotidoctor.reports.localization_view import kernel_value_rows, took_text
from aotidoctor.reports.text import one_line, seconds

if TYPE_CHECKING:
    from aotidoctor.model.localization import OutputComparison


# Numbers of the drawings.
_ROWS, _NAME = 40, 52
_MISSING = "No drawing: {}. The numbers are in the table. Drawings need matplotlib: pip install matplotlib"


def plot_value_rows(place: Localization) -> tuple[ValueRow, ...]:
    """One row per tensor written, in the order of the calls."""
    rows = []
    for call in place.values:
        outs = [buffer for buffer in call.wrote if buffer.seen]
        for at, buffer in enumerate(outs):
            name = _short_name(one_line(call.name)) if at == 0 else ""
            bad = call.name == place.first_bad
            # What no node has is common among intermediates; it is told of the call in question only.
            error = buffer.error if bad or buffer.agrees else None
            rows.append(
                ValueRow(
                    call=name,
                    tensor=one_line(buffer.name, 16),
                    low=_finite(buffer.low),
                    high=_finite(buffer.high),
                    mean=_finite(buffer.mean),
                    nan=buffer.nan,
                    inf=buffer.inf,
                    error=_finite(error),
                    agrees=buffer.agrees,
                    bad=bad,
                )
            )
    return tuple(rows)


def _short_name(name: str) -> str:
    """A kernel's name beside a drawing: of a long one the beginning and the number at its end."""
    return name if len(name) <= _NAME else f"{name[: _NAME - 9]}…{name[-8:]}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def value_figure(place: Localization) -> tuple[Block, ...]:
    """Range, NaN and Inf, and error of what each call wrote; around the call in question where there are many."""
    every = plot_value_rows(place)
    if not every:
        return ()
    center = next((at for at, row in enumerate(every) if row.bad), 0)
    begin = max(0, min(center - _ROWS // 2, len(every) - _ROWS))
    rows = every[begin : begin + _ROWS]
    more = f" {plural(len(every) - len(rows), 'more tensor')} in the table." if len(rows) < len(every) else ""
    against = any(row.error is not None for row in rows)
    text = "What each call wrote, in order: smallest to largest value, mean" + (
        ", and the largest difference from the program." if against else "."
    )
    bad = [row.tensor for row in rows if row.nan or row.inf]
    words = f"Values of {plural(len(rows), 'tensor')}; NaN or Inf in {', '.join(bad[:8]) or 'none'}."

    def draw() -> Markup:
        from aotidoctor.reports.html import plots

        return plots.values(rows)

    return _draw_figure(draw, text + more, words)


def error_rows(found: Sequence[OutputComparison]) -> tuple[ErrorRow, ...]:
    """The outputs whose distance from a float64 run is known."""
    return tuple(
        ErrorRow(
            label=one_line(item.path, 40),
            error=item.error,
            reference=_finite(item.reference_error),
            allowed=_finite(item.allowed),
            bad=item.verdict == "package-wrong",
        )
        for item in found
        if item.error is not None and math.isfinite(item.error)
    )


def error_figure(found: Sequence[OutputComparison]) -> tuple[Block, ...]:
    """Errors of package and reference against float64, beside what rounding explains."""
    rows = error_rows(found)[:_ROWS]
    if not rows:
        return ()

    def draw() -> Markup:
        from aotidoctor.reports.html import plots

        return plots.errors(rows)

    text = "Error against a float64 run, in eps of the dtype: of package and reference, and what rounding explains."
    wrong = [row.label for row in rows if row.bad]
    return _draw_figure(
        draw, text, f"Errors of {plural(len(rows), 'output')}; wrong: {', '.join(wrong[:8]) or 'none'}."
    )


def _draw_figure(draw: Callable[[], Markup], text: str, words: str) -> tuple[Block, ...]:
    try:
        svg = draw()
    except ImportError as error:
        why = f"matplotlib cannot be imported ({one_line(str(error), 120)})"
    except Exception as error:  # noqa: BLE001 - a broken installation draws nothing, and the report stands
        why = f"matplotlib failed ({type(error).__name__}: {one_line(str(error), 120)})"
    else:
        return (Figure(svg=svg, text=words, caption=html_blocks.line(text)),)
    return (NoteBlock(body=html_blocks.line(_MISSING.format(why)), tone="dim"),)


# Culprit and chain, calls in order, native stack with source, values of kernels.
_CALLS = 300
_FRAMES = 60
_VALUES = 400


def place_blocks(place: Localization | None, known: Collection[str]) -> tuple[Block, ...]:
    """Culprit, how it is known, chain, address; then the native stack."""
    if place is None:
        return ()
    rows = tuple(
        (
            label,
            html_blocks.code(text, 900) if label in ("Culprit", "Chain") else html_blocks.link_mentions(text, known),
        )
        for label, text in localization_view.place_rows(place)
    )
    return (*((Pairs(rows=rows),) if rows else ()), *_source(place), *_stack(place))


def call_blocks(place: Localization | None) -> tuple[Block, ...]:
    """The calls of the last call of the model, with their time; earlier ones folded."""
    if place is None or not place.timeline:
        return ()
    runs = [tuple(entries) for _, entries in groupby(place.timeline, key=lambda entry: entry.call)]
    blocks: list[Block] = [_calls(place, runs[-1], last=True)]
    if len(runs[-1]) > _CALLS:
        blocks.append(_note(f"and {plural(len(runs[-1]) - _CALLS, 'call')} before these"))
    if place.calls_total > len(place.timeline):
        more = f"{place.calls_total:,} calls of all kinds were traced; these are the ones that compute"
        blocks.append(_note(more))
    blocks += [
        Folded(
            summary=html_blocks.line(f"Call {entries[0].call} of the model: {plural(len(entries), 'call')}"),
            blocks=(_calls(place, entries, last=False),),
        )
        for entries in runs[:-1][-4:]
    ]
    return tuple(blocks)


def _note(text: str) -> NoteBlock:
    return NoteBlock(body=html_blocks.line(text), tone="dim")


def _calls(place: Localization, entries: Sequence[TimelineEntry], *, last: bool) -> TableBlock:
    total = sum(entry.seconds or 0.0 for entry in entries)
    begin, lines = 0.0, []
    for at, entry in enumerate(entries):
        final = last and at == len(entries) - 1
        # When the call ran within the call of the model, in percent of its time; the last one has no end.
        left = 100 * begin / total if total > 0 else 0.0
        width = 100 * (entry.seconds or 0.0) / total if total > 0 else 0.0
        style = f"left:{min(left, 99.0):.1f}%;width:{width:.1f}%"
        kind = "bar" if entry.seconds is not None else "bar open"
        bar = cell(Markup('<span class="{}" style="{}"></span>').format(kind, style), look="when")
        # What is to be said of a call beside its name.
        if entry.state == "entered":
            sign = "never returned"
        elif entry.name == place.first_bad:
            sign = "first bad values"
        else:
            sign = "culprit" if final and entry.name == place.culprit else ""
        name = html_blocks.code(entry.name, 160)
        if sign:
            name = Markup('{} <span class="tag">{}</span>').format(name, sign)
        cells = (
            cell(str(at), look="num", tone="dim"),
            cell(name, heads=True),
            cell(entry.kind, tone="dim"),
            cell(localization_view.took_text(entry.seconds), look="num"),
            bar,
            cell(html_blocks.line(localization_view.made_of(entry), 300), tone="dim"),
        )
        lines.append(TableLine(cells=cells, tone="bad" if sign else ""))
        begin += entry.seconds or 0.0
    return TableBlock(
        label=f"Call {entries[0].call} of the model",
        headings=("", "Call", "Kind", "Time", "When", "Made of"),
        rows=tuple(lines[-_CALLS:]),
        look="calls",
    )


def _stack(place: Localization) -> tuple[Block, ...]:
    rows = localization_view.frame_rows(place, whole=True)
    if not rows:
        return ()
    listed = {number for number, _, _ in localization_view.frame_rows(place)}
    lines = {
        number: TableLine(
            cells=(cell(number, look="num", tone="dim"), cell(html_blocks.code(name), heads=True), mono(where))
        )
        for number, name, where in rows
    }
    headings = ("", "Function", "Place")
    first = tuple(line for number, line in lines.items() if number in listed)
    others = [line for number, line in lines.items() if number not in listed]
    rest, more = cut("frames", others, _FRAMES)
    blocks: list[Block] = [TableBlock(label="Native stack, innermost first", headings=headings, rows=first)]
    if rest:
        below = TableBlock(label="Other frames", headings=headings, rows=rest)
        summary = html_blocks.line(
            plural(len(others), "frame of the runtime and its callers", "frames of the runtime and its callers")
        )
        blocks.append(Folded(summary=summary, blocks=(below, *more)))
    return tuple(blocks)


def _source(place: Localization) -> tuple[Block, ...]:
    """The line of the package that the innermost frame or the failed check is in."""
    frame = localization_view.source_frame(place)
    excerpt = localization_view.excerpt(place)
    if frame is None or excerpt is None:
        return ()
    width = len(str(frame.lines[-1].number))
    words = [(line, html_blocks.esc(f"{line.number:>{width}}  {line.text}".replace("\n", " "))) for line in frame.lines]
    body = Markup("\n").join(Markup("<mark>{}</mark>").format(text) if line.marked else text for line, text in words)
    return (OutputBlock(title=html_blocks.code(excerpt.title), body=body),)


def value_blocks(place: Localization | None) -> tuple[Block, ...]:
    """The drawing of ranges and errors, the table of the same numbers, and what was left out."""
    if place is None or not place.values:
        return ()
    rows = kernel_value_rows(place.values, place.first_bad, whole=True)
    blocks: list[Block] = [*value_figure(place)]
    if rows:
        lines = texts(rows[1:], tones=["bad" if row[0] else "" for row in rows[1:]])
        listed, more = cut("rows", lines, _VALUES)
        table = TableBlock(label="Values of kernels", headings=tuple(rows[0]), rows=listed, look="numbers")
        summary = html_blocks.line(f"The numbers: {plural(len(lines), 'tensor')} that the calls read or wrote")
        blocks.append(Folded(summary=summary, blocks=(table, *more)))
    return (*blocks, *(_note(text) for text in place.notes[:20]))


# Probes against outcomes, and every child run with what it printed.
_RUNS = 200
_ENDINGS = 12
# Characters of what runs printed: of each run, and of all together.
_ROOM = 8000
_ROOM_OF_ALL = 240_000
_STREAMS = 5


def matrix_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """One row per probe, one column per way to end, the runs in the cells; and the pattern where there is one."""
    if not report.runs:
        return ()
    endings = list(dict.fromkeys(run_view.run_ending(outcome) for outcome in report.runs))[:_ENDINGS]
    probes = list(dict.fromkeys(outcome.request.probe for outcome in report.runs))
    lines = []
    for probe in probes:
        runs = [outcome for outcome in report.runs if outcome.request.probe == probe]
        purpose = runs[0].request.purpose if len({outcome.request.purpose for outcome in runs}) == 1 else ""
        name = html_blocks.code(runs[0].request.probe, 60)
        words = dict.fromkeys(run_view.took_effect(outcome) for outcome in runs if outcome.request.env)
        lines.append(
            TableLine(
                cells=(
                    cell(Markup("{} {}").format(name, html_blocks.dim(purpose, 120)), heads=True),
                    *(_ending_cell(runs, ending) for ending in endings),
                    cell(
                        ", ".join(word for word in words if word), tone="dim" if set(words) <= {"yes", ""} else "unsure"
                    ),
                )
            )
        )
    table = TableBlock(
        label="Probes and how they ended",
        headings=("Probe", *endings, "Setting acted"),
        rows=tuple(lines[:_RUNS]),
        look="matrix",
    )
    rows = run_view.probe_rows(report)
    pattern: tuple[Block, ...] = ()
    if rows:
        verdict = NoteBlock(body=html_blocks.link_mentions(run_view.probes_verdict(report), known))
        pattern = (verdict, TableBlock(label=run_view.PROBES_TITLE, headings=run_view.PROBE_HEADINGS, rows=texts(rows)))
    return (table, *pattern)


def _ending_cell(runs: list[Outcome], ending: str) -> Cell:
    """The runs that ended so; a crash or an exception is red, an end as it should be is green."""
    here = [outcome for outcome in runs if run_view.run_ending(outcome) == ending]
    if not here:
        return cell("")
    tone = "bad" if any(run_view.outcome_failed(outcome) for outcome in here) else "good"
    places = dict.fromkeys(outcome.stage for outcome in here if run_view.outcome_failed(outcome))
    body = Markup("{} {}").format(
        html_blocks.links(outcome.id for outcome in here[:20]), html_blocks.dim(", ".join(places))
    )
    return cell(body, tone=tone, look="outcome")


def run_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """Build a folded block per run, in order."""
    runs = report.runs[:_RUNS]
    room = max(300, min(_ROOM, _ROOM_OF_ALL // (_STREAMS * max(len(runs), 1))))
    first = run_view.first_failed(runs)
    folded = tuple(_run(outcome, known, _ROOM if outcome is first else room) for outcome in runs)
    more = len(report.runs) - len(runs)
    free = report.extra.get(NOT_CONFINED)
    return (
        *folded,
        *((NoteBlock(body=html_blocks.line(f"Confined: all but {free}", 2000), tone="dim"),) if free else ()),
        *((NoteBlock(body=html_blocks.line(f"and {plural(more, 'more run')}"), tone="dim"),) if more else ()),
    )


def _run(outcome: Outcome, known: Collection[str], room: int) -> Folded:
    failed = run_view.outcome_failed(outcome)
    summary = Markup('<b>{}</b> {} <span class="end {}">{}</span> <span class="dim">{}</span>').format(
        html_blocks.line(outcome.id),
        html_blocks.code(outcome.request.probe, 60),
        "bad" if failed else "good",
        html_blocks.line(run_view.run_ending(outcome)),
        html_blocks.line(", ".join((*((f"in {outcome.stage}",) if failed else ()), seconds(outcome.seconds)))),
    )
    # What it said, stream by stream, the end of each.
    error = outcome.error
    streams = (
        ("raised", (error.traceback or f"{error.type}: {error.message}") if error is not None else ""),
        ("stdout", outcome.stdout_tail),
        ("stderr", outcome.stderr_tail),
        ("debugger", outcome.debugger_output),
        ("tool", outcome.tool_output),
    )
    sizes = {"stdout": outcome.stdout_bytes, "stderr": outcome.stderr_bytes}
    printed: list[Block] = []
    for name, text in streams:
        of = f" (of {sizes[name]:,} bytes)" if sizes.get(name, 0) > len(text) else ""
        printed += printed_block(one_line(f"{name}{of}"), text, room)
    blocks = (Pairs(rows=_facts(outcome, known)), *printed)
    return Folded(summary=summary, blocks=blocks, id=html_blocks.anchor(outcome.id))


def _facts(outcome: Outcome, known: Collection[str]) -> tuple[tuple[str, Markup], ...]:
    effect = run_view.took_effect(outcome)
    why = f": {outcome.took_effect_why}" if outcome.took_effect_why else ""
    stages = ", ".join(f"{name} {took_text(took)}" for name, took in outcome.stages.items())
    memory = f"{outcome.peak_rss / 2**20:,.0f} MiB at most" if outcome.peak_rss else ""
    rows = (
        ("For", html_blocks.link_mentions(outcome.request.purpose, known)),
        ("Environment", html_blocks.code(run_view.env_text(outcome.request.env), 2000)),
        ("Setting acted", html_blocks.line(f"{effect}{why}" if effect and outcome.request.env else "")),
        ("Command", html_blocks.code(" ".join(outcome.argv), 2000)),
        ("Process", html_blocks.line("forked from a warm worker" if outcome.forked else "a fresh interpreter")),
        ("Stages", html_blocks.line(stages, 1000)),
        ("Memory", html_blocks.line(memory)),
        ("Warnings", html_blocks.line("; ".join(outcome.warnings), 1000)),
        ("No debugger", html_blocks.line(outcome.debugger_problem or "")),
    )
    return tuple(row for row in rows if row[1])
