"""Records are what frozen dataclasses with slots and keywords are."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import ClassVar, Generic, TypeVar

import pytest

from aotidoctor.model.record import record

T = TypeVar("T")


@record
class Point:
    """A point."""

    x: float
    y: float = 2.0
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", repr=False, compare=False)

    @property
    def size(self) -> float:
        """The longer side."""
        return max(self.x, self.y)


@record
class Named(Point):
    """A point with a name."""

    name: str


@record
class Nothing:
    """No fields."""


@record
class Checked:
    """One that looks at what it is given."""

    at: int

    def __post_init__(self) -> None:
        if self.at < 0:
            raise ValueError("below 0")


@record(kw_only=False)
class Pair:
    """By place."""

    one: int
    two: int = 2


@record(kw_only=False, frozen=False)
class Tally:
    """One that changes, with what it counts for itself."""

    start: int
    counts: dict[str, int] = field(default_factory=dict)
    last: str = field(init=False, default="")
    seen: list[str] = field(init=False, default_factory=list)


@record(frozen=False, eq=False)
class Same:
    """Equal to itself only."""

    at: int


@record
class Held(Generic[T]):
    """Of any kind, with something that is the class's."""

    value: T
    most: ClassVar[int] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """The same fields as ``Point``."""

    x: float
    y: float = 2.0
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", repr=False, compare=False)


@pytest.mark.parametrize("given", [{"x": 1.0}, {"x": 1.0, "y": float("nan")}, {"x": 0.0, "tags": ["a"], "note": "n"}])
def test_it_holds_and_shows_what_a_dataclass_does(given):
    mine, plain = Point(**given), Plain(**given)
    assert repr(mine) == repr(plain).replace("Plain", "Point")
    assert asdict(mine) == asdict(plain)
    assert [one.name for one in fields(mine)] == [one.name for one in fields(plain)]
    assert is_dataclass(Point)


@pytest.mark.parametrize("given", [{}, {"x": 1.0, "z": 2.0}, {"y": 1.0}])
def test_what_a_dataclass_refuses_is_refused_each_time(given):
    for cls in (Plain, Point, Point):
        with pytest.raises(TypeError):
            cls(**given)
    with pytest.raises(TypeError):
        Point(1.0)


def test_it_cannot_be_changed_and_has_no_room_for_more():
    point = Point(x=1.0)
    for name in ("x", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(point, name, 3.0)
        with pytest.raises(FrozenInstanceError):
            delattr(point, name)
    assert not hasattr(point, "__dict__")


def test_equal_ones_are_equal_and_hash_alike_whatever_does_not_count():
    nan = float("nan")
    assert Point(x=nan, note="a") == Point(x=nan, note="b")
    assert Point(x=1.0) != Point(x=1.5)
    assert Point(x=1.0) != Plain(x=1.0)
    assert Named(x=1.0, name="a") != Point(x=1.0)
    assert len({Checked(at=1), Checked(at=1), Checked(at=2)}) == 2
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    with pytest.raises(TypeError):
        hash(Point(x=1.0))


def test_each_object_gets_a_default_of_its_own():
    first, second = Point(x=1.0), Point(x=1.0)
    first.tags.append("a")
    assert second.tags == []


def test_one_that_inherits_has_the_fields_of_both():
    named = Named(x=1.0, name="a", tags=["b"])
    assert (named.x, named.y, named.tags, named.name, named.size) == (1.0, 2.0, ["b"], "a", 2.0)
    assert replace(named, name="c", x=5.0) == Named(x=5.0, name="c", tags=["b"])


def test_what_it_looks_at_is_looked_at_in_copies_too():
    with pytest.raises(ValueError, match="below 0"):
        Checked(at=-1)
    with pytest.raises(ValueError, match="below 0"):
        replace(Checked(at=1), at=-1)


@pytest.mark.parametrize("one", [Point(x=1.0, tags=["a"], note="n"), Named(x=1.0, name="a"), Nothing()])
def test_copies_and_pickles_are_equal(one):
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one
        assert asdict(other) == asdict(one)


def test_by_place_and_by_name():
    assert Pair(1) == Pair(one=1, two=2) != Pair(1, 3)
    assert {Pair(1): "x"}[Pair(1, 2)] == "x"
    assert replace(Pair(1), two=5) == Pair(1, 5)
    assert repr(Pair(1)) == "Pair(one=1, two=2)"
    with pytest.raises(TypeError):
        Pair()


def test_what_is_not_frozen_changes_and_has_no_hash():
    tally = Tally(1)
    tally.last, tally.counts["a"] = "a", 1
    tally.seen.append("a")
    assert (tally.start, tally.last, tally.seen, Tally(1).seen, Tally(1).counts) == (1, "a", ["a"], [], {})
    assert tally != Tally(1) == Tally(1, {})
    assert copy.deepcopy(tally) == tally == pickle.loads(pickle.dumps(tally))
    with pytest.raises(TypeError):
        hash(tally)
    with pytest.raises(TypeError):
        Tally(1, {}, "a")
    with pytest.raises(AttributeError):
        tally.other = 1


def test_what_has_no_equality_is_equal_to_itself():
    one = Same(at=1)
    assert one == one != Same(at=1)
    assert {one: 1}[one] == 1
    one.at = 2
    assert one.at == 2


def test_what_is_the_classs_is_no_field():
    assert [one.name for one in fields(Held)] == ["value"]
    assert (Held(value=2).value, Held.most) == (2, 3)
    assert Held[int](value=2) == Held(value=2)


def test_a_class_can_be_asked_for_its_fields_before_it_has_objects():
    @record
    class Early:
        """One."""

        at: int
        why: str = field(default="", metadata={"unit": "s"})

    @record
    class Later(Early):
        """One more."""

        then: int = 1

    assert is_dataclass(Later)
    assert [(one.name, one.type, one.kw_only) for one in fields(Later)] == [
        ("at", "int", True), ("why", "str", True), ("then", "int", True),
    ]  # fmt: skip
    assert fields(Early)[1].metadata == {"unit": "s"}
    assert replace(Later(at=1), then=2) == Later(at=1, then=2)
    assert Early.__slots__ == ("at", "why")
    assert Later.__slots__ == ("then",)


def both():
    """A record and a dataclass with the same fields, by place and by name, new each time."""

    class Body:
        """Three kinds of fields."""

        __annotations__ = {"one": "int", "two": "int", "more": "list[int]", "own": "list[int]", "last": "int"}
        two = 2
        more = field(default_factory=list)
        own = field(init=False, default_factory=list)
        last = field(default=5, kw_only=True)

    plain = dict(vars(Body))
    return record(kw_only=False)(Body), dataclass(frozen=True)(type("Body", (), plain))


CALLS = (
    ((1,), {}), ((1, 3), {}), ((1, 3, [4]), {"last": 6}), ((), {"one": 1}), ((), {"two": 1, "one": 7, "more": [8]}),
    ((), {}), ((1, 2, [3], 4), {}), ((1,), {"one": 2}), ((), {"one": 1, "none": 2}), ((1,), {"own": [1]}),
)  # fmt: skip


@pytest.mark.parametrize("earlier", [0, 1, 200])
@pytest.mark.parametrize(("given", "named"), CALLS)
def test_the_first_object_is_like_the_hundredth(earlier, given, named):
    made, plain = both()
    for _ in range(earlier):
        made(one=0)
    try:
        right = asdict(plain(*given, **named))
    except TypeError as error:
        wrong = str(error).partition("()")[2].replace(" positional", "")
        with pytest.raises(TypeError) as raised:
            made(*given, **named)
        assert str(raised.value).partition("()")[2].replace(" positional", "") == wrong
    else:
        assert asdict(made(*given, **named)) == right


def test_one_that_inherits_from_a_dataclass_has_the_fields_of_both():
    @dataclass(slots=True)
    class Loose:
        """Of the usual make."""

        x: float
        y: float = 2.0

    @record
    class More(Loose):
        """One more."""

        then: int

    assert asdict(More(x=1.0, then=2)) == {"x": 1.0, "y": 2.0, "then": 2}
