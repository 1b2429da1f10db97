"""What is drawn: the numbers of each drawing, chosen here, put on paper by ``plots``, which needs matplotlib.

A page without drawings is whole: the same numbers stand in tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from aotidoctor.model.phrases import plural
from aotidoctor.model.record import record
from aotidoctor.reports.html import text
from aotidoctor.reports.html.blocks import Block, Figure, Note
from aotidoctor.reports.text import one_line, short_name

if TYPE_CHECKING:
    from markupsafe import Markup

    from aotidoctor.model.localization import BufferValues, Localization, OutputComparison

_ROWS = 40
_MISSING = "No drawing: {}. The numbers are in the table. Drawings need matplotlib: pip install matplotlib"


@record
class ValueRow:
    """A tensor that a call wrote: range of its finite values, what is not finite, and how far it is off.

    ``call`` is empty but for the first tensor of a call. ``error`` is None where there is nothing to hold it against,
    ``agrees`` None where that is not known.
    """

    call: str
    tensor: str
    low: float | None
    high: float | None
    mean: float | None
    nan: int
    inf: int
    error: float | None
    agrees: bool | None
    bad: bool


@record
class ErrorRow:
    """An output: errors in eps of its dtype, of package and reference, and what rounding explains."""

    label: str
    error: float
    reference: float | None
    allowed: float | None
    bad: bool


def value_rows(place: Localization) -> tuple[ValueRow, ...]:
    """One row per tensor written, in the order of the calls."""
    rows = []
    for call in place.values:
        outs = [buffer for buffer in call.wrote if buffer.seen]
        for at, buffer in enumerate(outs):
            name = short_name(one_line(call.name), 52) if at == 0 else ""
            rows.append(_value_row(name, buffer, bad=call.name == place.first_bad))
    return tuple(rows)


def _value_row(call: str, buffer: BufferValues, *, bad: bool) -> ValueRow:
    # What no node has is common among intermediates; it is told of the call in question only.
    error = buffer.error if bad or buffer.agrees else None
    return ValueRow(
        call=call,
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


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def value_figure(place: Localization) -> tuple[Block, ...]:
    """Range, NaN and Inf, and error of what each call wrote; around the call in question where there are many."""
    every = value_rows(place)
    if not every:
        return ()
    center = next((at for at, row in enumerate(every) if row.bad), 0)
    begin = max(0, min(center - _ROWS // 2, len(every) - _ROWS))
    rows = every[begin : begin + _ROWS]
    more = f" {plural(len(every) - len(rows), 'more tensor')} in the table." if len(rows) < len(every) else ""
    against = any(row.error is not None for row in rows)
    said = "What each call wrote, in order: smallest to largest value, mean" + (
        ", and the largest difference from the program." if against else "."
    )
    bad = [row.tensor for row in rows if row.nan or row.inf]
    told = f"Values of {plural(len(rows), 'tensor')}; NaN or Inf in {', '.join(bad[:8]) or 'none'}."

    def draw() -> Markup:
        from aotidoctor.reports import plots  # noqa: PLC0415

        return plots.values(rows)

    return _drawn(draw, said + more, told)


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
        from aotidoctor.reports import plots  # noqa: PLC0415

        return plots.errors(rows)

    said = "Error against a float64 run, in eps of the dtype: of package and reference, and what rounding explains."
    wrong = [row.label for row in rows if row.bad]
    return _drawn(draw, said, f"Errors of {plural(len(rows), 'output')}; wrong: {', '.join(wrong[:8]) or 'none'}.")


def _drawn(draw: Callable[[], Markup], said: str, told: str) -> tuple[Block, ...]:
    try:
        svg = draw()
    except ImportError as error:
        why = f"matplotlib cannot be imported ({one_line(str(error), 120)})"
    except Exception as error:  # noqa: BLE001 - a broken installation draws nothing, and the report stands
        why = f"matplotlib failed ({type(error).__name__}: {one_line(str(error), 120)})"
    else:
        return (Figure(svg=svg, text=told, caption=text.line(said)),)
    return (Note(body=text.line(_MISSING.format(why)), tone="dim"),)
