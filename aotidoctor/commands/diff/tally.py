"""What is collected while two documents are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from aotidoctor.commands.diff.rules import RULES
from aotidoctor.model.difference import Difference
from aotidoctor.model.phrases import listed

Told = str | int | float | bool | tuple[object, ...] | None
NONE = "none"


@dataclass(slots=True)
class Tally:
    """Differences, counts of what is equal and left out, and what only one side tells."""

    differences: list[Difference] = field(default_factory=list)
    equal: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)

    def compare(self, rule: str, subject: str, a: Told, b: Told) -> None:
        """One fact of both sides; None is not known."""
        area = RULES[rule].area
        if a == b:
            self.equal[area] += 1
        elif a is None or b is None:
            self.unknown.append(
                f"{area}: {subject} (only {'B' if a is None else 'A'} records it: {shown(b if a is None else a)})"
            )
        else:
            self.differ(rule, subject, shown(a), shown(b))

    def differ(self, rule: str, subject: str, a: str, b: str) -> None:
        """A difference."""
        known = RULES[rule]
        self.differences.append(
            Difference(
                area=known.area, subject=subject, a=a, b=b, level=known.level, why=known.why, playbook=known.playbook
            )
        )

    def skip(self, what: str, a: object, b: object) -> None:
        """Something that differs without meaning."""
        if a != b:
            self.left_out[what] += 1

    def members(self, rule: str, subject: str, a: Iterable[str], b: Iterable[str]) -> None:
        """Two sets: what only one of them has, in one difference."""
        first, second = set(a), set(b)
        self.equal[RULES[rule].area] += len(first & second) or (1 if first == second else 0)
        only_a, only_b = sorted(first - second), sorted(second - first)
        if only_a or only_b:
            self.differ(rule, subject, _listed(only_a), _listed(only_b))


def _listed(names: list[str]) -> str:
    return f"also {listed(names, 8)}" if names else "without"


def shown(value: Told) -> str:
    """A fact as text."""
    match value:
        case None:
            return "not known"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return f"({', '.join('?' if item is None else str(item) for item in value)})"
        case _:
            return str(value) or "empty"
