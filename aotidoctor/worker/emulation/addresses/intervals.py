"""Where a value lies that is computed from others, by where these lie: arithmetic on intervals, ends included."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aotidoctor.worker.emulation.dtypes import Interval


def _product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _divided(a: Interval, b: Interval) -> Interval | None:
    return (a[0] // b[1], a[1] // b[0]) if a[0] >= 0 and b[0] > 0 else None


def _rest(a: Interval, b: Interval) -> Interval | None:
    if a[0] < 0 or b[0] <= 0:
        return None
    return a if a[1] < b[0] else (0, min(a[1], b[1] - 1))


RANGES: Mapping[str, Callable[..., Interval | None]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": _product,
    "//": _divided,
    "%": _rest,
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "where": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    "abs": lambda a: (0 if a[0] <= 0 <= a[1] else min(map(abs, a)), max(map(abs, a))),
    "to": lambda a: a,
    "reshape": lambda a: a,
}


def _less(a: Interval, b: Interval) -> bool | None:
    return True if a[1] < b[0] else False if a[0] >= b[1] else None


def _at_most(a: Interval, b: Interval) -> bool | None:
    return True if a[1] <= b[0] else False if a[0] > b[1] else None


TRUTHS: Mapping[str, Callable[[Interval, Interval], bool | None]] = {
    "<": _less,
    "<=": _at_most,
    ">": lambda a, b: _less(b, a),
    ">=": lambda a, b: _at_most(b, a),
}
