"""Choose the numbers of the drawings of an HTML page, which ``plots`` draws with matplotlib.

A page without drawings is complete: tables show the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from aotidoctor.model.evidence import plural
from aotidoctor.model.localization import Localization
from aotidoctor.model.record import record
from aotidoctor.reports.html.html_blocks import ErrorRow, ValueRow
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.model.localization import OutputComparison


@record
class Figure:
    """A drawing with its caption; ``text`` says the same without one. Without a drawing the caption says why."""

    caption: str
    svg: Markup | None = None
    text: str = ""


# Numbers of the drawings.
_ROWS, _NAME = 40, 52
_MISSING = "No drawing: {}. The numbers are in the table. Drawings need matplotlib: pip install matplotlib"


def _value_rows(place: Localization) -> tuple[ValueRow, ...]:
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


def figure(of: str, place: Localization | None) -> Figure | None:
    """The drawing of ``values`` or ``errors``; None where there are no numbers."""
    if place is None:
        return None
    return _value_figure(place) if of == "values" else _error_figure(place.comparison)


def _value_figure(place: Localization) -> Figure | None:
    """Range, NaN and Inf, and error of what each call wrote; around the call in question where there are many."""
    every = _value_rows(place)
    if not every:
        return None
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


def _error_figure(found: Sequence[OutputComparison]) -> Figure | None:
    """Errors of package and reference against float64, beside what rounding explains."""
    rows = tuple(
        ErrorRow(
            label=one_line(item.path, 40),
            error=item.error,
            reference=_finite(item.reference_error),
            allowed=_finite(item.allowed),
            bad=item.verdict == "package-wrong",
        )
        for item in found
        if item.error is not None and math.isfinite(item.error)
    )[:_ROWS]
    if not rows:
        return None

    def draw() -> Markup:
        from aotidoctor.reports.html import plots

        return plots.errors(rows)

    text = "Error against a float64 run, in eps of the dtype: of package and reference, and what rounding explains."
    wrong = [row.label for row in rows if row.bad]
    return _draw_figure(
        draw, text, f"Errors of {plural(len(rows), 'output')}; wrong: {', '.join(wrong[:8]) or 'none'}."
    )


def _draw_figure(draw: Callable[[], Markup], text: str, words: str) -> Figure:
    try:
        return Figure(svg=draw(), text=words, caption=text)
    except ImportError as error:
        why = f"matplotlib cannot be imported ({one_line(str(error), 120)})"
    except Exception as error:  # noqa: BLE001 - a broken installation draws nothing, and the report stands
        why = f"matplotlib failed ({type(error).__name__}: {one_line(str(error), 120)})"
    return Figure(caption=_MISSING.format(why))
