"""How far an output may be from the reference's: ``|ours - theirs| <= atol + rtol * |theirs|`` for each element."""

from __future__ import annotations

import math
from collections.abc import Sequence

from aotidoctor.model.record import record

GRID = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Values of rtol for which a report keeps the atol that agreement needs."""


@record
class Tolerance:
    """One ``--rtol`` or ``--atol``. ``output`` is a path (``result[0]``) or the number of a leaf; None for all."""

    output: str | None
    value: float


@record
class Tolerances:
    """What the user asked for. A value for one output goes before one for all; of equal ones the last counts."""

    rtol: tuple[Tolerance, ...] = ()
    atol: tuple[Tolerance, ...] = ()

    def of(self, path: str, index: int) -> tuple[float, float] | None:
        """``(rtol, atol)`` for an output leaf, None where neither was given. One that was not given is 0 then."""
        rtol, atol = _pick(self.rtol, path, index), _pick(self.atol, path, index)
        return None if rtol is None and atol is None else (rtol or 0.0, atol or 0.0)

    def unused(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Outputs that were named and are not there."""
        known = {*paths, *(str(index) for index in range(len(paths)))}
        named = [one.output for one in (*self.rtol, *self.atol) if one.output is not None]
        return tuple(dict.fromkeys(name for name in named if name not in known))


def parse_tolerance(text: str) -> Tolerance:
    """``1e-3``, ``result[0]:1e-3`` or ``0:1e-3``. Raises ValueError."""
    output, _, number = text.strip().rpartition(":")
    value = float(number)
    if not math.isfinite(value) or value < 0:
        raise ValueError(text)
    return Tolerance(output=output or None, value=value)


def agrees_within(needed: Sequence[tuple[float, float]], rtol: float, atol: float) -> bool:
    """Whether an output agrees, from the ``(rtol, atol needed)`` pairs that a report keeps.

    Exact at the points of the grid. Between two of them the smaller rtol is taken, which needs the larger atol: the
    answer may be no where a run would say yes, never the other way round.
    """
    below = [allowed for point, allowed in needed if point <= rtol]
    return bool(below) and min(below) <= atol


def _pick(given: Sequence[Tolerance], path: str, index: int) -> float | None:
    for names in ((path, str(index)), (None,)):
        found = [one.value for one in given if one.output in names]
        if found:
            return found[-1]
    return None
