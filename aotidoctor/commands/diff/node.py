"""A JSON document that anybody may have written: every value is asked for by type, and a wrong one is told by place."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.record import record

# Placeholders of redaction are numbered per report.
_PLACEHOLDER = re.compile(r"<(home|host|user|values|secret|email|ip|mac|account|word)(?:-\d+)?>")
_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
_SHOWN = 60


@record
class Node:
    """A value with its place.

    Asking raises CannotExamineError where the value has another type; what is absent or null is None or empty.
    """

    value: JsonValue
    file: str
    place: str = "$"

    def at(self, key: str) -> Node:
        """The value of ``key``; a null one where it is absent."""
        return Node(value=self._object().get(key), file=self.file, place=f"{self.place}.{key}")

    def text(self, key: str) -> str | None:
        """A text, with the placeholders of redaction without their numbers."""
        node = self.at(key)
        match node.value:
            case None:
                return None
            case str():
                return same(node.value)
            case _:
                raise node.misfit("a text")

    def number(self, key: str) -> int | float | None:
        """A number; the JSON of reports has texts for those that are not finite."""
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

    def nodes(self, key: str) -> tuple[Node, ...]:
        """The items of a list."""
        node = self.at(key)
        if node.value is None:
            return ()
        if not isinstance(node.value, list):
            raise node.misfit("a list")
        return tuple(
            Node(value=item, file=self.file, place=f"{node.place}[{index}]") for index, item in enumerate(node.value)
        )

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of a list."""
        found = []
        for node in self.nodes(key):
            if not isinstance(node.value, str):
                raise node.misfit("a text")
            found.append(same(node.value))
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
        return {} if inner.value is None else {name: inner.text(name) or "" for name in inner.keys()}  # noqa: SIM118

    def keys(self) -> tuple[str, ...]:
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
        """The error that tells where, observed and expected."""
        shown = repr(self.value) if isinstance(self.value, str | int | float) else ""
        cut = f" {shown[:_SHOWN]}" if shown else ""
        observed = _NAMES.get(type(self.value), "null")
        return CannotExamineError(f"{self.file}: at {self.place[:200]}: observed {observed}{cut}, expected {expected}")


def same(text: str) -> str:
    """``text`` as it is compared."""
    return _PLACEHOLDER.sub(r"<\1>", text)
