"""Records out of JSON: each value goes where its type fits, and what fits nowhere is told with its place."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Generic, Literal, TypeVar

import pytest

from aotidoctor.model import record_json
from aotidoctor.model.artifact import Artifact
from aotidoctor.model.case import Case
from aotidoctor.model.record import record, to_json
from aotidoctor.model.record_json import RecordError, from_json

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"


@record
class Box(Generic[T]):
    held: T | tuple[T, ...]


@record
class Point:
    x: int


@record
class Named:
    name: str


@record
class Open:
    """Fields of which JSON shows the type."""

    plain: bool | int | float | str | None = None
    table: str | Mapping[str, int] = ""
    colour: Colour | int = 0
    shape: Point | Named | None = None
    boxed: Box[int | str] | None = None
    rows: list[object] = field(default_factory=list)
    numbers: frozenset[int] = frozenset()
    pair: tuple[int, str] = (0, "")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("plain", True, True),
        ("plain", 1, 1),
        ("plain", 1.5, 1.5),
        ("plain", "word", "word"),
        ("plain", None, None),
        ("table", {"a": 1}, {"a": 1}),
        ("table", "a", "a"),
        ("colour", "red", Colour.RED),
        ("colour", 3, 3),
        ("shape", {"x": 2}, Point(x=2)),
        ("shape", {"name": "n"}, Named(name="n")),
        ("boxed", {"held": 3}, Box(held=3)),
        ("boxed", {"held": "a"}, Box(held="a")),
        ("boxed", {"held": ["a", 3]}, Box(held=("a", 3))),
        ("rows", [1, {"a": None}], [1, {"a": None}]),
        ("numbers", [3, 1, 3], frozenset({1, 3})),
        ("pair", [1, "b"], (1, "b")),
    ],
)
def test_a_value_goes_where_it_fits(name, value, expected):
    made = getattr(from_json(Open, {name: value}), name)
    assert (made, type(made)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("plain", [], ".plain: list fits none of its types"),
        ("table", 3, ".table: 3 fits none of its types"),
        ("table", {"a": "b"}, ".table['a']: b, expected int"),
        ("colour", "blue", ".colour: blue is unknown to this version"),
        ("shape", {}, ".shape: dict fits none of its types"),
        ("boxed", {"held": [1.5]}, ".boxed.held[0]: 1.5 fits none of its types"),
        ("rows", {}, ".rows: dict, expected a list"),
        ("numbers", [1 << 70], ".numbers[0]: a number of 71 bits"),
        ("pair", [1], ".pair: 1 items, expected 2"),
    ],
)
def test_what_fits_nowhere_is_told_with_its_place(name, value, message):
    with pytest.raises(RecordError) as caught:
        from_json(Open, {name: value})
    assert str(caught.value).endswith(message)


@record
class Unread:
    word: Literal["a"] = "a"
    either: Literal["a"] | int = 0
    several: set[int] = field(default_factory=set)


@pytest.mark.parametrize("value", [{"word": "a"}, {"several": [1]}])
def test_a_type_that_json_does_not_show_is_refused(value):
    with pytest.raises(RecordError, match="this type cannot be read"):
        from_json(Unread, value)


def test_of_a_union_the_types_that_json_shows_are_taken():
    assert from_json(Unread, {"either": 3}).either == 3
    with pytest.raises(RecordError, match="a fits none of its types"):
        from_json(Unread, {"either": "a"})


def test_there_and_back():
    whole = Open(plain=math.inf, table={"a": 1}, colour=Colour.RED, shape=Point(x=1), numbers=frozenset({2, 1}))
    written = to_json(whole)
    assert (written["plain"], written["colour"], written["numbers"]) == ("Infinity", "red", [1, 2])
    assert from_json(Open, {**written, "plain": 2.5}) == Open(
        plain=2.5, table={"a": 1}, colour=Colour.RED, shape=Point(x=1), numbers=frozenset({1, 2})
    )


@pytest.mark.parametrize("kind", [Artifact, Case])
def test_every_record_of_a_case_is_read_from_json(kind):
    # A name in an annotation that the reader does not know ends `analyze` with an error of ours.
    assert set(record_json.field_types(kind)) == {item.name for item in fields(kind)}
