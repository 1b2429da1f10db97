"""Read records from the plain JSON that ``to_json`` wrote, strictly: the text may come from anybody.

A record is an object with a key per field. Reading follows the types of the fields: a missing key takes its default, an
unknown key is ignored (a newer version wrote it), and a value of another type than its field raises ``RecordError``
with the place. Of a union of records the one whose fields fit is taken.

Apart from ``record``: `check` reads no record and does not load this.
"""

from __future__ import annotations

import enum
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from typing import NoReturn, TypeVar, Union, cast, get_args, get_origin

from aotidoctor.model.record import JsonObject, JsonValue

T = TypeVar("T")
# A type as the annotations of a record give it: a class, a generic alias, a union or a type variable.
Hint = object
Bound = tuple[tuple[TypeVar, Hint], ...]
Reader = Callable[[JsonValue], object]
Maker = Callable[..., object]  # type: ignore[explicit-any]  # each record has fields of its own

_INTEGERS = 1 << 64
# inputs after record: of two names the last counts.
_MODULES = (
    "jobs", "record", "inputs", "expr", "artifact", "contract", "errors", "evidence", "other_artifacts",
    "case", "localization", "report", "run",
)  # fmt: skip
_FLOATS = {
    "NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf,
    # As the worker writes them.
    "nan": math.nan, "inf": math.inf, "-inf": -math.inf,
}  # fmt: skip


class RecordError(ValueError):
    """The JSON is not the record that it should be; the text names the place."""


def from_json(kind: type[T], value: JsonValue) -> T:
    """The record of type ``kind`` that ``value`` holds. Raises ``RecordError``."""
    try:
        return cast("T", _reader(cast("type", kind), ())(value))
    except RecordError as error:
        raise RecordError(f"{kind.__name__}{error}") from error
    except RecursionError as error:
        raise RecordError("nested too deep") from error


def read_fields(kind: type, value: JsonObject) -> tuple[dict[str, object], dict[str, str]]:
    """The fields of ``kind`` that ``value`` has, and by name what is wrong with others that it has."""
    found, wrong = {}, {}
    for name, inner in _parts(kind, ())[1].items():
        if name in value:
            try:
                found[name] = inner(value[name])
            except RecordError as error:
                wrong[name] = f"{kind.__name__}.{name}{error}"
    return found, wrong


def read_fitting(kind: type[T], value: JsonObject, defaults: Mapping[str, object]) -> T:
    """The record that ``value`` holds, with ``defaults``, else those of ``kind``, for what is missing or malformed."""
    return cast("T", cast("Maker", kind)(**{**defaults, **read_fields(kind, value)[0]}))


@lru_cache(maxsize=2048)
def _reader(hint: Hint, bound: Bound) -> Reader:
    """What reads a value of type ``hint``. Its errors begin with the place within the value."""
    if isinstance(hint, TypeVar):
        hint = dict(bound).get(hint, object)
    if hint is object:
        return lambda value: value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union_reader(arguments, bound)
    if isinstance(origin, type):
        return _generic_reader(origin, arguments, bound)
    if isinstance(hint, type):
        return _plain_reader(hint)
    return _refuse


def _refuse(_: JsonValue) -> NoReturn:
    raise RecordError(": this type cannot be read")


def _union_reader(options: Sequence[Hint], bound: Bound) -> Reader:
    others = [option for option in options if option is not types.NoneType]
    may_be_none = len(others) < len(options)
    if len(others) == 1:
        inner = _reader(others[0], bound)
        return lambda value: None if value is None and may_be_none else inner(value)

    def read(value: JsonValue) -> object:
        if value is None and may_be_none:
            return None
        fitting = [option for option in options if _could_be(option, value, bound)]
        if not fitting:
            raise RecordError(f": {_describe_value(value)} fits none of its types")
        whole = isinstance(value, int) and int in fitting
        return _reader(int if whole else fitting[0], bound)(value)

    return read


def _could_be(option: Hint, value: JsonValue, bound: Bound) -> bool:
    if isinstance(option, TypeVar):
        return option in dict(bound) and _could_be(dict(bound)[option], value, bound)
    origin = get_origin(option) or option
    if origin in (Union, types.UnionType):
        return any(_could_be(one, value, bound) for one in get_args(option))
    if not isinstance(origin, type):
        return False
    if is_dataclass(origin):
        return isinstance(value, dict) and _fits(origin, value)
    if issubclass(origin, Mapping):
        return isinstance(value, dict)
    if origin in (tuple, list, frozenset):
        return isinstance(value, list)
    if issubclass(origin, enum.Enum):
        return isinstance(value, str)
    if origin is float:
        is_word = isinstance(value, str) and value in _FLOATS
        return is_word or (isinstance(value, (int, float)) and not isinstance(value, bool))
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return origin in (str, bool) and isinstance(value, origin)


def _fits(record: type, value: JsonObject) -> bool:
    needed, readers = _parts(record, ())
    known = readers.keys()
    # Among unions of records, one that explains every key; records of a newer version have more keys than that.
    return (
        value.keys() >= {*needed}
        and bool(known & value.keys() or not value)
        and (value.keys() <= known or bool(needed))
    )


def _generic_reader(origin: type, arguments: Sequence[Hint], bound: Bound) -> Reader:
    if is_dataclass(origin):
        parameters = cast("Sequence[TypeVar]", getattr(origin, "__parameters__", ()))
        known = dict(bound)
        given = [known.get(one, one) if isinstance(one, TypeVar) else one for one in arguments]
        return _record_reader(origin, tuple(zip(parameters, given, strict=False)))
    if origin in (dict, list):
        # JSON as it stands; a Mapping and a tuple are fields of a record.
        return _object if origin is dict else _array
    if issubclass(origin, Mapping):
        inner = _reader(arguments[1], bound)
        return lambda value: _read_each(inner, _object(value).items())
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _pair_reader([_reader(one, bound) for one in arguments])
    if origin in (tuple, frozenset):
        make, inner = cast("Maker", origin), _reader(arguments[0], bound)
        return lambda value: make(_read_each(inner, enumerate(_array(value))).values())
    return _refuse


def _read_each(inner: Reader, items: Iterable[tuple[str | int, JsonValue]]) -> dict[str | int, object]:
    found: dict[str | int, object] = {}
    key: str | int = ""
    try:
        for key, one in items:
            found[key] = inner(one)
    except RecordError as error:
        raise RecordError(f"[{key!r}]{error}") from error
    return found


def _pair_reader(inner: Sequence[Reader]) -> Reader:
    def read(value: JsonValue) -> object:
        items = _array(value)
        if len(inner) != len(items):
            raise RecordError(f": {len(items)} items, expected {len(inner)}")
        return tuple(one(item) for one, item in zip(inner, items, strict=True))

    return read


def _plain_reader(kind: type) -> Reader:
    if is_dataclass(kind):
        return _record_reader(kind, ())
    if issubclass(kind, enum.Enum):
        return _enum_reader(kind)

    def read(value: JsonValue) -> object:
        if type(value) is kind and kind is not int:
            return value
        if not _could_be(kind, value, ()):
            raise RecordError(f": {_describe_value(value)}, expected {kind.__name__}")
        if kind is float and isinstance(value, str):
            return _FLOATS[value]
        if isinstance(value, int) and not -_INTEGERS < value < _INTEGERS:
            raise RecordError(f": a number of {value.bit_length()} bits")
        return value

    return read


def _enum_reader(kind: type[enum.Enum]) -> Reader:
    def read(value: JsonValue) -> object:
        try:
            return kind(value)
        except ValueError as error:
            raise RecordError(f": {_describe_value(value)} is unknown to this version") from error

    return read


def _record_reader(kind: type, bound: Bound) -> Reader:
    def read(value: JsonValue) -> object:
        items = _object(value)
        # Not known before the first value comes: records may contain each other.
        needed, readers = _parts(kind, bound)
        for name in needed:
            if name not in items:
                raise RecordError(f".{name}: missing")
        given: dict[str, object] = {}
        name = ""
        try:
            for name, inner in readers.items():
                if name in items:
                    given[name] = inner(items[name])
        except RecordError as error:
            raise RecordError(f".{name}{error}") from error
        return cast("Maker", kind)(**given)

    return read


@lru_cache(maxsize=512)
def _parts(kind: type, bound: Bound) -> tuple[Sequence[str], Mapping[str, Reader]]:
    """The fields that have no default, and what reads each of the fields."""
    hints, found = field_types(kind), _fields(kind)
    needed = [item.name for item in found if item.default is MISSING and item.default_factory is MISSING]
    return needed, {item.name: _reader(hints[item.name], bound) for item in found}


@lru_cache(maxsize=256)
def field_types(kind: type) -> dict[str, Hint]:
    """The types of the fields of a record, by name."""
    try:
        # What JSON holds is anything.
        return typing.get_type_hints(kind, localns={"JsonValue": object})
    except NameError:
        return typing.get_type_hints(kind, localns=_vocabulary())


@lru_cache(maxsize=1)
def _vocabulary() -> dict[str, object]:
    """The names that annotations use: many are imported for the type checker only."""
    modules = [vars(import_module(f"aotidoctor.model.{name}")) for name in _MODULES]
    return {**{name: value for module in modules for name, value in module.items()}, "JsonValue": object}


@lru_cache(maxsize=256)
def _fields(kind: type) -> tuple[Field[object], ...]:
    """The fields that JSON can hold."""
    hints = field_types(kind)
    return tuple(
        item
        for item in fields(kind)
        if not any(get_origin(one) is Callable for one in (hints[item.name], *get_args(hints[item.name])))
    )


def _object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise RecordError(f": {_describe_value(value)}, expected an object")
    return value


def _array(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise RecordError(f": {_describe_value(value)}, expected a list")
    return value


def _describe_value(value: JsonValue) -> str:
    return type(value).__name__ if isinstance(value, (dict, list)) else str(value)[:40]
