"""Read untrusted JSON documents value by value, and collect differences with their playbooks.

Every value is read by type, and a wrong one is reported with its place. Levels of a difference: ``decisive`` is
enough to make a package fail, or compute something else, on one side; a playbook names ``relevant`` ones among its
reasons; ``minor`` ones are reported and do not decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from aotidoctor.model import load_toml
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import list_names
from aotidoctor.model.fleet import DocumentDifference
from aotidoctor.model.record import JsonValue, record

# Placeholders of redaction are numbered per report.
_PLACEHOLDER = re.compile(r"<(home|host|user|values|secret|email|ip|mac|account|word)(?:-\d+)?>")
_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
_LONGEST_VALUE = 60


@record
class DocumentNode:
    """A value with its place.

    The methods raise CannotExamineError for a value of another type; an absent or null value is None or empty.
    """

    value: JsonValue
    file: str
    place: str = "$"

    def at(self, key: str) -> DocumentNode:
        """The value of ``key``; a null one if it is absent."""
        return DocumentNode(value=self._object().get(key), file=self.file, place=f"{self.place}.{key}")

    def without(self, keys: Collection[str]) -> DocumentNode:
        """The object without some of its values."""
        value = {key: item for key, item in self._object().items() if key not in keys}
        return DocumentNode(value=value, file=self.file, place=self.place)

    def text(self, key: str) -> str | None:
        """A text, without the numbers in placeholders of redaction."""
        node = self.at(key)
        match node.value:
            case None:
                return None
            case str():
                return normalized_text(node.value)
            case _:
                raise node.misfit("a text")

    def number(self, key: str) -> int | float | None:
        """A finite number; None for NaN and infinities, which are texts in reports."""
        node = self.at(key)
        match node.value:
            case None | "NaN" | "Infinity" | "-Infinity":
                return None
            case bool():
                raise node.misfit("a number")
            case int() | float():
                return node.value
            case _:
                raise node.misfit("a number")

    def flag(self, key: str) -> bool | None:
        """True or false."""
        node = self.at(key)
        if node.value is not None and not isinstance(node.value, bool):
            raise node.misfit("true or false")
        return node.value

    def nodes(self, key: str) -> tuple[DocumentNode, ...]:
        """The items of a list."""
        node = self.at(key)
        if node.value is None:
            return ()
        if not isinstance(node.value, list):
            raise node.misfit("a list")
        return tuple(
            DocumentNode(value=item, file=self.file, place=f"{node.place}[{index}]")
            for index, item in enumerate(node.value)
        )

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of a list."""
        found = []
        for node in self.nodes(key):
            if not isinstance(node.value, str):
                raise node.misfit("a text")
            found.append(normalized_text(node.value))
        return tuple(found)

    def numbers(self, key: str) -> tuple[int | None, ...]:
        """The whole numbers of a list."""
        found: list[int | None] = []
        for node in self.nodes(key):
            if node.value is not None and (not isinstance(node.value, int) or isinstance(node.value, bool)):
                raise node.misfit("a whole number")
            found.append(node.value)
        return tuple(found)

    def mapping(self, key: str) -> Mapping[str, str]:
        """An object of texts; null is an empty text."""
        inner = self.at(key)
        return {} if inner.value is None else {name: inner.text(name) or "" for name in inner.names()}

    def names(self) -> tuple[str, ...]:
        """The keys of an object."""
        return tuple(self._object())

    @property
    def missing(self) -> bool:
        """Whether there is nothing here."""
        return self.value is None

    def _object(self) -> Mapping[str, JsonValue]:
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.misfit("an object")
        return self.value

    def misfit(self, expected: str) -> CannotExamineError:
        """The error with the place, the observed value and the expected one."""
        text = repr(self.value) if isinstance(self.value, str | int | float) else ""
        cut = f" {text[:_LONGEST_VALUE]}" if text else ""
        observed = _NAMES.get(type(self.value), "null")
        return CannotExamineError(f"{self.file}: at {self.place[:200]}: observed {observed}{cut}, expected {expected}")


def normalized_text(text: str) -> str:
    """``text`` without the numbers in placeholders, for comparison."""
    return _PLACEHOLDER.sub(r"<\1>", text)


# Kinds of differences, by area.
class DifferenceRule(NamedTuple):
    """A kind of difference. ``playbook`` is the slug of a cause, None if no playbook names such a difference."""

    area: str
    playbook: str | None
    level: str
    why: str


DIFFERENCE_RULES = {
    kind: DifferenceRule(area, playbook or None, level, why)
    for area, rules in load_toml(Path(__file__).with_name("differences.toml").read_text(encoding="utf-8")).items()
    for kind, (playbook, level, why) in rules.items()
}


# Differences of two documents.
Fact = str | int | float | bool | tuple[object, ...] | None
NONE = "none"


@dataclass(slots=True)
class DifferenceTally:
    """Differences, counts of equal and omitted facts, and facts that only one side has."""

    differences: list[DocumentDifference] = field(default_factory=list)
    equal: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)

    def compare(self, rule: str, subject: str, a: Fact, b: Fact) -> None:
        """Compare one fact of both sides; None is not known."""
        area = DIFFERENCE_RULES[rule].area
        if a == b:
            self.equal[area] += 1
        elif a is None or b is None:
            self.unknown.append(
                f"{area}: {subject} (only {'B' if a is None else 'A'} records it: {fact_text(b if a is None else a)})"
            )
        else:
            self.differ(rule, subject, fact_text(a), fact_text(b))

    def differ(self, rule: str, subject: str, a: str, b: str) -> None:
        """Add a difference."""
        known = DIFFERENCE_RULES[rule]
        self.differences.append(
            DocumentDifference(
                area=known.area, subject=subject, a=a, b=b, level=known.level, why=known.why, playbook=known.playbook
            )
        )

    def skip(self, what: str, a: object, b: object) -> None:
        """Count a difference that means nothing."""
        if a != b:
            self.left_out[what] += 1

    def members(self, rule: str, subject: str, a: Iterable[str], b: Iterable[str]) -> None:
        """Compare two sets: one difference with the members that only one of them has."""
        first, second = set(a), set(b)
        self.equal[DIFFERENCE_RULES[rule].area] += len(first & second) or (1 if first == second else 0)
        only_a, only_b = sorted(first - second), sorted(second - first)
        if only_a or only_b:
            self.differ(rule, subject, _describe_names(only_a), _describe_names(only_b))


def _describe_names(names: list[str]) -> str:
    return f"also {list_names(names, 8)}" if names else "without"


def fact_text(value: Fact) -> str:
    """Format a fact."""
    match value:
        case None:
            return "not known"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return f"({', '.join('?' if item is None else str(item) for item in value)})"
        case _:
            return str(value) or "empty"
