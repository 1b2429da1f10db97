"""Measures each expression that is not in ``linear.txt`` and writes those that are linear there; tells the others.

A growth of more than eightfold for four times the text counts as not linear, and only where it takes long enough to be
measured: CPU time of this thread, the least of several tries.
"""

from __future__ import annotations

import math
import re
import sys

from tests.unit.patterns import pump
from tests.unit.patterns.test_linear import RECORD, cases, key, recorded

_LENGTHS = (1000, 4000)
# A short one first: what is exponential takes long for it already, and for a longer one until it is stopped.
_FIRST = 100
_LOOK = 1500
# A linear expression takes a tenth of it for ``_LOOK`` characters; a quadratic one several times as much.
_NOTICED_S = 0.002
_GROWTH = 8
# The measure itself is tried on these first.
_NOT_LINEAR = (r"(\w+\s*)+$", r"\s*\s*x", r"'(.*)' and '(.*)'", r"\w+=", r"(?:a|aa)+b", r"a.*b.*c")
_LINEAR = (r"(?<!\w)\w+=", r"^a.*b", r"'([^']*)'", r"\d{1,18}(?:,\d{1,18}){0,64}")


def not_linear(pattern: re.Pattern, methods: frozenset[str]) -> tuple[str, str, str] | None:
    """The text that shows that ``pattern`` is not linear; None if none does."""
    for pumped in pump.texts(pattern):
        if pump.seconds(pattern, methods, pumped, _FIRST) > 5 * _NOTICED_S:
            return pumped
        looked = pump.seconds(pattern, methods, pumped, _LOOK)
        if looked == math.inf:
            return pumped
        if looked < _NOTICED_S:
            continue
        # Once, and only what looks bad again: the least of several is what no other process had a part in.
        if all(_grows(pattern, methods, pumped, tries) for tries in (1, 4)):
            return pumped
    return None


def _grows(pattern: re.Pattern, methods: frozenset[str], pumped: tuple[str, str, str], tries: int) -> bool:
    short, long = (pump.seconds(pattern, methods, pumped, length, tries) for length in _LENGTHS)
    return long > 3 * _NOTICED_S and long > _GROWTH * short


def main() -> int:
    """0 where every expression is linear."""
    search = frozenset({"search"})
    unseen = [text for text in _NOT_LINEAR if not_linear(re.compile(text), search) is None]
    accused = [text for text in _LINEAR if not_linear(re.compile(text), search) is not None]
    if unseen or accused:
        print(f"this machine cannot measure now: not seen {unseen}, accused {accused}")
        return 2
    known = recorded() if RECORD.exists() and "--all" not in sys.argv else {}
    linear: dict[str, frozenset[str]] = {}
    slow = 0
    for pattern, where, methods in cases():
        name = key(pattern)
        shown = None if methods <= known.get(name, frozenset()) else not_linear(pattern, methods)
        if shown is None:
            linear[name] = linear.get(name, frozenset()) | methods
        else:
            slow += 1
            print(f"{where} {sorted(methods)} {pattern.pattern!r}\n    {shown!r}", flush=True)
    lines = [" ".join([name, *sorted(methods)]) for name, methods in sorted(linear.items())]
    RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
