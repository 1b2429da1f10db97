"""Define records with ``@record``, a dataclass at a tenth of its cost, and the types of JSON values.

A record has slots, and is frozen and made by keywords by default. A command imports some two hundred records and makes
objects of a few dozen. ``dataclass`` describes the fields and compiles six methods for each of them at once, which is a
quarter of the time of `check`. Here the description is made when it is first needed, methods that depend on the fields
are compiled at their first call, and the others are the same functions for all classes. ``fields``, ``replace``,
``asdict`` and ``is_dataclass`` work. The first objects of a class are filled from a table, since compiling ``__init__``
costs as much as a hundred of them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, NoReturn, TypeVar, overload

# JSON values, and the readings of them that are used everywhere.
JsonValue = str | int | float | bool | None | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]


def as_object(value: JsonValue) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: JsonValue) -> list[JsonValue]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def objects(value: JsonValue) -> list[JsonObject]:
    """The objects in a list; empty for anything else."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def text_of(value: JsonValue) -> str | None:
    """The value if it is text."""
    return value if isinstance(value, str) else None


def as_integer(value: JsonValue) -> int | None:
    """The value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def to_json(value: object) -> JsonValue:
    """``value`` as strict JSON can hold it, records as objects; ``record_json.from_json`` reads them back.

    Infinite numbers become texts, functions None, and what has no JSON form its text.
    """
    match value:
        case None | bool():
            return value
        case enum.Enum():
            return to_json(value.value)
        case str():
            return value
        case int():
            return int(value)
        case float():
            if math.isfinite(value):
                return float(value)
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Mapping():
            return {str(key): to_json(item) for key, item in value.items()}
        case frozenset() | set():
            return [to_json(item) for item in sorted(value, key=str)]
        case Sequence():
            return [to_json(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {item.name: to_json(getattr(value, item.name)) for item in fields(value)}
    return None if callable(value) and not isinstance(value, type) else str(value)


def values_of(value: DataclassInstance) -> dict[str, object]:
    """Field name to value, one level deep; ``dataclasses.asdict`` would copy, and fails on mapping proxies."""
    return {item.name: getattr(value, item.name) for item in fields(value)}


# Filling objects from a table. What is annotated so is no field.
_OF_THE_CLASS = ("ClassVar", "typing.ClassVar")

# Name, what puts a value into the slot, the default, what makes one, whether ``__init__`` takes it, and by place.
Row = tuple[str, Callable[[object, object], None], object, object, bool, bool]


def field_names(own: Mapping[str, object]) -> Sequence[str]:
    """The names of the fields in the body of a class, in order."""
    found = own.get("__annotations__")
    kinds = found.items() if isinstance(found, dict) else ()
    return [name for name, kind in kinds if not str(kind).startswith(_OF_THE_CLASS)]


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


def arguments_by_name(
    table: Sequence[Row], by_place: Sequence[object], by_name: Mapping[str, object]
) -> Mapping[str, object] | None:
    """The arguments of ``__init__``, all by name; None where they do not fit."""
    if not by_place:
        return by_name
    names = [name for name, *_, taken, placed in table if taken and placed]
    values = dict(zip(names, by_place, strict=False))
    fits = len(by_place) <= len(names) and values.keys().isdisjoint(by_name)
    return {**values, **by_name} if fits else None


def fill(new: object, table: Sequence[Row], given: Mapping[str, object]) -> bool:
    """Whether ``new`` could be filled from what was ``given`` by name: nothing is missing, and nothing too much."""
    used = 0
    for name, put, default, make, taken, _ in table:
        if taken and name in given:
            value = given[name]
            used += 1
        elif callable(make):
            value = make()
        elif default is not MISSING:
            value = default
        elif taken:
            return False
        else:
            continue
        put(new, value)
    return used == len(given)


# The decorator.
if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        """Only for type checkers; Python has it from 3.11 on."""
        return lambda decorator: decorator


T = TypeVar("T")
# So many objects cost as much as compiling ``__init__``.
_FEW = 64
# Of a class whose objects have no slots.
_OF_OBJECTS = ("__dict__", "__weakref__")


@overload
def record(cls: type[T]) -> type[T]: ...


@overload
def record(
    cls: None = None, *, kw_only: bool = True, frozen: bool = True, eq: bool = True
) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(
    cls: type[T] | None = None, *, kw_only: bool = True, frozen: bool = True, eq: bool = True
) -> type[T] | Callable[[type[T]], type[T]]:
    """``cls`` as a record; one that inherits from a record has the fields of both.

    What is not ``frozen`` has no hash; without ``eq`` two are equal if they are the same.
    """

    def made(cls: type[T]) -> type[T]:
        return _make_record(cls, kw_only=kw_only, frozen=frozen, eq=eq)

    return made if cls is None else made(cls)


def _make_record(cls: type[T], *, kw_only: bool, frozen: bool, eq: bool) -> type[T]:
    own = dict(vars(cls))
    # The class once more, with a slot for each field that no base has.
    by_place = not kw_only
    inherited = {slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())}
    names = field_names(own)
    body = {name: value for name, value in own.items() if name not in (*names, *_OF_OBJECTS)}
    body["__record__"] = (own, by_place)
    body["__slots__"] = tuple(name for name in names if name not in inherited)
    made = _class(cls, body)
    made.__qualname__ = cls.__qualname__
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        setattr(made, name, _Described(made, own, name, kw_only=kw_only))
    methods = {"__init__": _filled_first(made), **(_FROZEN if frozen else _MUTABLE)}
    if eq:
        methods["__eq__"] = _compiled_later(made, "__eq__")
        # Without a hash a class has None in its place.
        methods["__hash__"] = _compiled_later(made, "__hash__") if frozen else None
    for name, method in methods.items():
        if name not in own or (name == "__hash__" and not frozen):
            setattr(made, name, method)
    return made


def _class(like: type[T], body: Mapping[str, object]) -> type[T]:
    made: type[T] = type(like).__call__(type(like), like.__name__, like.__bases__, dict(body))
    return made


class _Described:
    """The description of a class by ``dataclass``, made at its first use, as most classes are only imported."""

    def __init__(self, cls: type, own: Mapping[str, object], name: str, *, kw_only: bool) -> None:
        self._cls, self._own, self._name, self._kw_only = cls, own, name, kw_only

    def __get__(self, _object: object, _cls: type) -> object:
        body = {name: value for name, value in self._own.items() if name not in _OF_OBJECTS}
        # Without a text ``dataclass`` would make one up, from a signature.
        plain: type = _class(self._cls, {**body, "__doc__": self._cls.__name__})
        dataclass(init=False, repr=False, eq=False, match_args=False, kw_only=self._kw_only)(plain)
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            setattr(self._cls, name, vars(plain)[name])
        return vars(self._cls)[self._name]


def _filled_first(cls: type) -> object:
    has_post_init = hasattr(cls, "__post_init__")
    table: list[tuple[Row, ...] | None] = []
    count = 0

    def method(self: object, *by_place: object, **by_name: object) -> None:
        nonlocal count
        count += 1
        if not table:
            table.append(rows(cls))
        fields_ = table[0]
        given = arguments_by_name(fields_, by_place, by_name) if fields_ is not None and count <= _FEW else None
        if fields_ is None or given is None or not fill(self, fields_, given):
            # It also reports what is wrong with the arguments.
            _compile_method(cls, "__init__")(self, *by_place, **by_name)
        elif has_post_init:
            self.__post_init__()  # type: ignore[attr-defined]

    return method


def _compiled_later(cls: type, name: str) -> object:
    def method(self: object, *given: object, **named: object) -> object:
        return _compile_method(cls, name)(self, *given, **named)

    return method


def _compile_method(cls: type, name: str) -> FunctionType:
    """Make the method of ``cls`` as ``dataclass`` would, but put values into slots past the refusing assignment."""
    known: dict[str, object] = {"MISSING": MISSING}
    if name == "__init__":
        by_place: list[str] = []
        by_name: list[str] = []
        lines = ["pass"]
        for at, one in enumerate(fields(cls)):
            known[f"set{at}"], known[f"default{at}"] = getattr(cls, one.name).__set__, one.default
            value = _value(one, at, known)
            if value is None:
                continue
            lines.append(f"set{at}(self, {value})")
            needed = one.default is MISSING and one.default_factory is MISSING
            if one.init:
                (by_name if one.kw_only else by_place).append(one.name if needed else f"{one.name}=default{at}")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        parameters = ["self", *by_place, *(["*", *by_name] if by_name else [])]
        text = f"({', '.join(parameters)}): {'; '.join(lines)}"
    elif name == "__eq__":
        mine, others = _values(cls, "self"), _values(cls, "other")
        text = f"(self, other): return {mine} == {others} if other.__class__ is self.__class__ else NotImplemented"
    else:
        text = f"(self): return hash({_values(cls, 'self')})"
    exec(f"def {name}{text}", known)  # noqa: S102 - names of fields, and ours
    made = known[name]
    if not isinstance(made, FunctionType):
        raise TypeError(name)
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, made)
    return made


def _value(one: Field[object], at: int, known: dict[str, object]) -> str | None:
    """The expression that the field is set to; None for one that is set elsewhere."""
    if one.default_factory is not MISSING:
        known[f"make{at}"] = one.default_factory
        return f"make{at}() if {one.name} is MISSING else {one.name}" if one.init else f"make{at}()"
    if one.init:
        return one.name
    return None if one.default is MISSING else f"default{at}"


def _values(cls: type, name: str) -> str:
    return f"({''.join(f'{name}.{one.name}, ' for one in fields(cls) if one.compare)})"


@recursive_repr()
def _repr(self: DataclassInstance) -> str:
    values = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({values})"


def _refuse(_: object, name: str, *_value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: DataclassInstance) -> list[object]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: DataclassInstance, state: list[object]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


_MUTABLE: dict[str, object] = {"__repr__": _repr}
_FROZEN: dict[str, object] = {
    **_MUTABLE,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": _state,
    "__setstate__": _restore,
}
