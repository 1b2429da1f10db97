"""The first objects of a record are filled from a table: to compile ``__init__`` costs as much as a hundred of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field

# What is annotated so is no field.
_OF_THE_CLASS = ("ClassVar", "typing.ClassVar")

# Name, what puts a value into the slot, the default, what makes one, whether ``__init__`` takes it, and by place.
Row = tuple[str, Callable[[object, object], None], object, object, bool, bool]


def field_names(own: Mapping[str, object]) -> Sequence[str]:
    """The names of the fields in the body of a class, in order."""
    found = own.get("__annotations__", {})
    assert isinstance(found, dict)  # noqa: S101 - Python makes it
    return [name for name, kind in found.items() if not str(kind).startswith(_OF_THE_CLASS)]


def rows(cls: type) -> tuple[Row, ...] | None:
    """The fields of a record, those of its bases first; None where a base is a dataclass of another make."""
    found: dict[str, Row] = {}
    for base in reversed(cls.__mro__):
        own, by_place = vars(base).get("__record__", ({}, False))
        if not own and "__dataclass_fields__" in vars(base):
            return None
        for name in field_names(own):
            value = own.get(name, MISSING)
            put = getattr(cls, name).__set__
            if isinstance(value, Field):
                placed = by_place if value.kw_only is MISSING else not value.kw_only
                found[name] = (name, put, value.default, value.default_factory, value.init, placed)
            else:
                found[name] = (name, put, value, MISSING, True, by_place)
    return tuple(found.values())


def named(
    table: Sequence[Row], by_place: Sequence[object], by_name: Mapping[str, object]
) -> Mapping[str, object] | None:
    """What is given to ``__init__``, all by name; None where that cannot be."""
    if not by_place:
        return by_name
    names = [name for name, *_, asked, placed in table if asked and placed]
    values = dict(zip(names, by_place, strict=False))
    fits = len(by_place) <= len(names) and values.keys().isdisjoint(by_name)
    return {**values, **by_name} if fits else None


def fill(new: object, table: Sequence[Row], given: Mapping[str, object]) -> bool:
    """Whether ``new`` could be filled from what was ``given`` by name: nothing is missing, and nothing too much."""
    used = 0
    for name, put, default, make, asked, _ in table:
        if asked and name in given:
            value = given[name]
            used += 1
        elif callable(make):
            value = make()
        elif default is not MISSING:
            value = default
        elif asked:
            return False
        else:
            continue
        put(new, value)
    return used == len(given)
