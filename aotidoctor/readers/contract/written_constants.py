"""Read the values of constants that the compiler wrote into the code instead of keeping them as weights.

Inductor writes a vector of up to eight elements as a tree of choices (``i < 2 ? (i < 1 ? a : b) : ...``), one
statement for each node, and a number as itself. A package gives no names to these values and loads nothing into them.
Apart from ``kernel_calls`` because only treatments in the worker need it: ``check`` must not compile its expressions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

MOST = 8
# A float32 that is not typed by hand has as many and more.
_DIGITS = 8
_FLOATS = r"(?:float|double|at::Half|at::BFloat16|c10::Half|c10::BFloat16)"
_NUMBER = r"-?\d{1,40}(?:\.\d{0,40})?(?:e[+-]?\d{1,4})?"
_STATEMENT = re.compile(r"\s*auto (tmp\d{1,6}) = (.{1,200});$")
_LITERAL = re.compile(rf"static_cast<(?:{_FLOATS}|u?int\d{{1,2}}_t|bool)>\(({_NUMBER}|true|false)L{{0,2}}\)")
_REAL = re.compile(rf"static_cast<{_FLOATS}>\(({_NUMBER})\)")
_LESS = re.compile(r"tmp\d{1,6} < (tmp\d{1,6})")
_CHOICE = re.compile(r"(?P<mask>tmp\d{1,6}) \? (?P<yes>tmp\d{1,6}) : (?P<no>tmp\d{1,6})")
# The same in vector registers, where the whole vector fits: AVX2 with eight elements, AVX-512 with more.
_SPREAD = re.compile(r"at::vec::VectorizedN?<[\w:, ]{1,40}>\((tmp\d{1,6})\)")
_MASK = re.compile(r"at::vec::VecMask<[\w:, ]{1,40}>\(tmp\d{1,6} < (tmp\d{1,6})\)")
_BLEND = re.compile(
    r"decltype\(tmp\d{1,6}\)::blendv\((?P<no>tmp\d{1,6}), (?P<yes>tmp\d{1,6}), "
    r"(?P<mask>tmp\d{1,6})(?:\.template cast<[\w:, ]{1,40}>\(\))?\)"
)


@dataclass(slots=True)
class _Choice:
    """Values in order, and the indices at which the next one begins; ``part`` of a bigger tree."""

    values: tuple[float, ...]
    limits: tuple[float, ...]
    part: bool = False

    @property
    def whole(self) -> bool:
        return not self.part and self.limits == tuple(range(1, len(self.values)))


def constant_vectors(source: str) -> list[tuple[float, ...]]:
    """The vectors of 2 to 8 elements that the code holds, in the order of the source, as often as they are there."""
    made: list[_Choice] = []
    known: dict[str, float | _Choice] = {}
    limits: dict[str, float] = {}
    for line in source.split("\n"):
        statement = _STATEMENT.match(line) if "auto tmp" in line else None
        if statement is None:
            continue
        name, text = statement[1], statement[2]
        known.pop(name, None)
        limits.pop(name, None)
        if literal := _LITERAL.fullmatch(text):
            truth = literal[1] in ("true", "false")
            known[name] = float(literal[1] == "true" if truth else literal[1])
        elif (spread := _SPREAD.fullmatch(text)) and spread[1] in known:
            known[name] = known[spread[1]]
        elif (less := _LESS.fullmatch(text) or _MASK.fullmatch(text)) and isinstance(
            limit := known.get(less[1]), float
        ):
            limits[name] = limit
        elif choice := _CHOICE.fullmatch(text) or _BLEND.fullmatch(text):
            left, right = known.get(choice["yes"]), known.get(choice["no"])
            if choice["mask"] not in limits or left is None or right is None:
                continue
            first, second = _side(left), _side(right)
            joined = (*first.limits, limits[choice["mask"]], *second.limits)
            # Both sides must be neighbours in one vector.
            if len(joined) < MOST and all(after - before == 1 for before, after in pairwise(joined)):
                first.part = second.part = True
                whole = _Choice((*first.values, *second.values), joined)
                known[name] = whole
                made.append(whole)
    return [item.values for item in made if item.whole]


def constant_numbers(source: str) -> list[float]:
    """The real numbers that the code holds, each once: those with many digits, which are not typed by hand, first."""
    found = dict.fromkeys(map(float, _REAL.findall(source)))
    return sorted(found, key=is_typed)


def is_typed(number: float) -> bool:
    """Whether a number has so few digits that it was probably typed by hand."""
    return len(repr(number).partition("e")[0].replace(".", "").strip("-0")) < _DIGITS


def _side(item: float | _Choice) -> _Choice:
    return item if isinstance(item, _Choice) else _Choice((item,), ())
