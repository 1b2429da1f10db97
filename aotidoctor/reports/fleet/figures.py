"""Causes over time as a drawing: stacked bars in the colours of the page, without anything to draw them with."""

from __future__ import annotations

from markupsafe import Markup

from aotidoctor.model.clusters import Timeline
from aotidoctor.reports.html.text import clean

WIDTH, HEIGHT = 960, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 8, 10, 30
_TICKS = 4


_BAR = Markup('<rect class="c{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}: {} {}</title></rect>')
_TICK = Markup('<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/><text x="{}" y="{:.1f}" text-anchor="end">{}</text>')


def over_time(line: Timeline) -> Markup:
    """One bar per period, one colour per cause; nothing where there is only one period."""
    totals = [sum(counts[at] for _, counts in line.series) for at in range(len(line.starts))]
    if len(line.starts) < 2 or not any(totals):
        return Markup("")
    top = _round_up(max(totals))
    step = (WIDTH - _LEFT - _RIGHT) / len(line.starts)
    scale = (HEIGHT - _TOP - _BOTTOM) / top
    parts = [*_axis(top, scale), *_labels(line, step)]
    for at, start in enumerate(line.starts):
        base, left = float(HEIGHT - _BOTTOM), _LEFT + at * step + step * 0.1
        for number, (name, counts) in enumerate(line.series):
            if counts[at]:
                tall = counts[at] * scale
                base -= tall
                parts.append(_BAR.format(number, left, base, step * 0.8, tall, start, clean(name), counts[at]))
    return Markup('<svg viewBox="0 0 {} {}" aria-hidden="true">{}</svg>').format(WIDTH, HEIGHT, Markup("").join(parts))


def _round_up(most: int) -> int:
    """A number of which ``_TICKS`` parts are whole, not below ``most``."""
    step = 1
    while step * _TICKS < most:
        step = step * 2 if str(step)[0] in "15" else step * 5 // 2
    return step * _TICKS


def _axis(top: int, scale: float) -> list[Markup]:
    parts = []
    for tick in range(_TICKS + 1):
        value = top * tick // _TICKS
        y = HEIGHT - _BOTTOM - value * scale
        parts.append(_TICK.format(_LEFT, WIDTH - _RIGHT, y, y, _LEFT - 6, y + 4, value))
    return parts


def _labels(line: Timeline, step: float) -> list[Markup]:
    """The first, the last and a few periods between."""
    every = max(1, -(-len(line.starts) // 8))
    return [
        Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
            _LEFT + (at + 0.5) * step, HEIGHT - 10, clean(start[-11:] if line.unit == "hour" else start)
        )
        for at, start in enumerate(line.starts)
        if at % every == 0
    ]
