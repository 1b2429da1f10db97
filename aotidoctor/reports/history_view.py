"""What a report says of the times that a failure was seen before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.phrases import plural
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.model.history import History

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def day(at: str) -> str:
    """``2026-09-03T10:00:00Z`` as ``3 September 2026``."""
    year, month, date = at[:4], at[5:7], at[8:10]
    if not (year + month + date).isdecimal() or not 1 <= int(month) <= 12:
        return at
    return f"{int(date)} {_MONTHS[int(month) - 1]} {year}"


def told(history: History) -> str:
    """``12 times since 3 September 2026, last on …; solved by … (note of 5 October 2026)``."""
    what = "" if history.of == "exact" else "not this exact failure; its family "
    parts = [what + ("once" if history.count == 1 else f"{history.count:,} times")]
    if history.count:
        parts[0] += f" {'on' if history.count == 1 else 'since'} {day(history.since)}"
        last = [] if history.count == 1 or history.last[:10] == history.since[:10] else [day(history.last)]
        last += [f"on {one_line(history.host_class, 160)}"] if history.host_class else []
        parts[0] += f", last {' '.join(last)}" if last else ""
    if history.solved is not None:
        parts.append(f"solved by: {one_line(history.solved.text, 300)} (note of {day(history.solved.at)})")
    elif history.notes:
        parts.append(f"{plural(history.notes, 'note')}: aotidoctor cases show {history.number}")
    return "; ".join(parts)
