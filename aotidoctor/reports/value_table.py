"""The statistics of kernels as one table: a row per tensor that a call read or wrote.

Of a long run the rows around the call in question are shown: what it read, what it wrote, and its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aotidoctor.reports.text import short_name

if TYPE_CHECKING:
    from aotidoctor.model.localization import BufferValues, KernelValues

_NEIGHBOURS = 2
_MARK = "►"
_ALWAYS = ("", "Call", "Min", "Max")


def value_rows(calls: Sequence[KernelValues], culprit: str | None, *, whole: bool = False) -> list[list[str]]:
    """Headings first, then rows of text. Columns in which nothing is told are left out."""
    shown = calls if whole else _around(calls, culprit)
    rows = [row for call in shown for row in _rows(call, marked=call.name == culprit)]
    if not rows:
        return []
    told = [column for column in rows[0] if column in _ALWAYS or any(row[column] for row in rows)]
    return [told, *([_text(row[column]) for column in told] for row in rows)]


def _rows(call: KernelValues, *, marked: bool) -> list[dict[str, str | float | None]]:
    """The tensors of one call; its name stands before the first."""
    seen = [buffer for buffer in call.buffers if buffer.seen]
    return [_row(call.name if at == 0 else "", buffer, marked=marked) for at, buffer in enumerate(seen)]


def _row(name: str, buffer: BufferValues, *, marked: bool) -> dict[str, str | float | None]:
    # An intermediate that no node has is common; it matters in the call in question only.
    told = buffer.role == "out" and (marked or buffer.agrees is True)
    return {
        "": _MARK if marked else "",
        "Call": short_name(name),
        "Tensor": f"{buffer.role} {buffer.name}",
        "Min": buffer.low,
        "Max": buffer.high,
        "Mean": buffer.mean,
        "NaN": buffer.nan or None,
        "Inf": buffer.inf or None,
        "Off by": buffer.error if told else None,
        "From": _closest(buffer) if told else "",
    }


def _closest(buffer: BufferValues) -> str:
    """The node whose values it has (``= relu``), or that is closest without having them (``not add``)."""
    if buffer.matches is None or buffer.agrees is None:
        return ""
    where = f" at {buffer.where}" if buffer.where else ""
    return f"{'=' if buffer.agrees else 'not'} {buffer.matches}{where}"


def _around(calls: Sequence[KernelValues], culprit: str | None) -> Sequence[KernelValues]:
    """The call in question and its neighbours; the first calls where none is."""
    center = next((at for at, call in enumerate(calls) if call.name == culprit), 0)
    return calls[max(0, center - _NEIGHBOURS) : center + _NEIGHBOURS + 1]


def _text(value: str | float | None) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case _ if math.isnan(value):
            return ""
        case _:
            return f"{value:.4g}"
