"""Where it is: culprit and chain, the calls in order, the native stack with its source, the values of kernels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby

from markupsafe import Markup

from aotidoctor.model.localization import Localization, SourceLine, TimelineEntry
from aotidoctor.model.phrases import plural
from aotidoctor.reports import place_view
from aotidoctor.reports.html import text as html_text
from aotidoctor.reports.html.blocks import (
    Block,
    Cell,
    Folded,
    Line,
    Note,
    Pairs,
    Printed,
    Table,
    cell,
    cut,
    mono,
    texts,
)
from aotidoctor.reports.html.figures import value_figure
from aotidoctor.reports.value_table import value_rows

_CALLS = 300
_FRAMES = 60
_VALUES = 400


def place_blocks(place: Localization | None, known: Collection[str]) -> tuple[Block, ...]:
    """Culprit, how it is known, chain, address; then the native stack."""
    if place is None:
        return ()
    rows = tuple(
        (label, html_text.code(text, 900) if label in ("Culprit", "Chain") else html_text.linked(text, known))
        for label, text in place_view.place_rows(place)
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
            summary=html_text.line(f"Call {entries[0].call} of the model: {plural(len(entries), 'call')}"),
            blocks=(_calls(place, entries, last=False),),
        )
        for entries in runs[:-1][-4:]
    ]
    return tuple(blocks)


def _note(text: str) -> Note:
    return Note(body=html_text.line(text), tone="dim")


def _calls(place: Localization, entries: Sequence[TimelineEntry], *, last: bool) -> Table:
    total = sum(entry.seconds or 0.0 for entry in entries)
    begin, lines = 0.0, []
    for at, entry in enumerate(entries):
        final = last and at == len(entries) - 1
        bar = _bar(begin, entry.seconds, total)
        lines.append(_call(place, at, entry, bar, final=final))
        begin += entry.seconds or 0.0
    return Table(
        label=f"Call {entries[0].call} of the model",
        headings=("", "Call", "Kind", "Time", "When", "Made of"),
        rows=tuple(lines[-_CALLS:]),
        look="calls",
    )


def _call(place: Localization, at: int, entry: TimelineEntry, bar: Cell, *, final: bool) -> Line:
    sign = _sign(place, entry, final=final)
    name = html_text.code(entry.name, 160)
    if sign:
        name = Markup('{} <span class="tag">{}</span>').format(name, sign)
    cells = (
        cell(str(at), look="num", tone="dim"),
        cell(name, heads=True),
        cell(entry.kind, tone="dim"),
        cell(place_view.took_text(entry.seconds), look="num"),
        bar,
        cell(html_text.line(place_view.made_of(entry), 300), tone="dim"),
    )
    return Line(cells=cells, tone="bad" if sign else "")


def _sign(place: Localization, entry: TimelineEntry, *, final: bool) -> str:
    """What is to be said of a call beside its name."""
    if entry.state == "entered":
        return "never returned"
    if entry.name == place.first_bad:
        return "first bad values"
    return "culprit" if final and entry.name == place.culprit else ""


def _bar(begin: float, length: float | None, total: float) -> Cell:
    """When the call ran within the call of the model, in percent of its time; the last one has no end."""
    left = 100 * begin / total if total > 0 else 0.0
    width = 100 * (length or 0.0) / total if total > 0 else 0.0
    style = f"left:{min(left, 99.0):.1f}%;width:{width:.1f}%"
    kind = "bar" if length is not None else "bar open"
    return cell(Markup('<span class="{}" style="{}"></span>').format(kind, style), look="when")


def _stack(place: Localization) -> tuple[Block, ...]:
    rows = place_view.frame_rows(place, whole=True)
    if not rows:
        return ()
    shown = {number for number, _, _ in place_view.frame_rows(place)}
    lines = {
        number: Line(cells=(cell(number, look="num", tone="dim"), cell(html_text.code(name), heads=True), mono(where)))
        for number, name, where in rows
    }
    headings = ("", "Function", "Place")
    first = tuple(line for number, line in lines.items() if number in shown)
    others = [line for number, line in lines.items() if number not in shown]
    rest, more = cut("frames", others, _FRAMES)
    blocks: list[Block] = [Table(label="Native stack, innermost first", headings=headings, rows=first)]
    if rest:
        below = Table(label="Other frames", headings=headings, rows=rest)
        summary = html_text.line(
            plural(len(others), "frame of the runtime and its callers", "frames of the runtime and its callers")
        )
        blocks.append(Folded(summary=summary, blocks=(below, *more)))
    return tuple(blocks)


def _source(place: Localization) -> tuple[Block, ...]:
    """The line of the package that the innermost frame or the failed check is in."""
    frame = place_view.source_frame(place)
    shown = place_view.excerpt(place)
    if frame is None or shown is None:
        return ()
    width = len(str(frame.lines[-1].number))
    body = Markup("\n").join(_source_line(line, width) for line in frame.lines)
    return (Printed(title=html_text.code(shown.title), body=body),)


def _source_line(line: SourceLine, width: int) -> Markup:
    words = html_text.esc(f"{line.number:>{width}}  {line.text}".replace("\n", " "))
    return Markup("<mark>{}</mark>").format(words) if line.marked else words


def value_blocks(place: Localization | None) -> tuple[Block, ...]:
    """The drawing of ranges and errors, the table of the same numbers, and what was left out."""
    if place is None or not place.values:
        return ()
    rows = value_rows(place.values, place.first_bad, whole=True)
    blocks: list[Block] = [*value_figure(place)]
    if rows:
        lines = texts(rows[1:], tones=["bad" if row[0] else "" for row in rows[1:]])
        shown, more = cut("rows", lines, _VALUES)
        table = Table(label="Values of kernels", headings=tuple(rows[0]), rows=shown, look="numbers")
        summary = html_text.line(f"The numbers: {plural(len(lines), 'tensor')} that the calls read or wrote")
        blocks.append(Folded(summary=summary, blocks=(table, *more)))
    return (*blocks, *(_note(text) for text in place.notes[:20]))
