"""Write records as plain JSON and read them back, strictly: the text may come from anybody.

A record is an object with a key per field. Reading follows the types of the fields: a missing key takes its default, an
unknown key is ignored (a newer version wrote it), and a value of another type than its field raises ``RecordError``
with the place. Of a union of records the one whose fields fit is taken. Functions are not written.

Apart from ``record``: `check` writes no record and does not load this.
"""

from __future__ import annotations

import enum
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from typing import TypeVar, Union, cast, get_args, get_origin

from aotidoctor.model.record import JsonObject, JsonValue

T = TypeVar("T")
# A type as the annotations of a record give it: a class, a generic alias, a union or a type variable.
Hint = object
Bound = Mapping[TypeVar, Hint]
Maker = Callable[..., object]  # type: ignore[explicit-any]  # each record has fields of its own

_INTEGERS = 1 << 64
# inputs after record: of two names the last counts.
_MODULES = (
    "jobs", "record", "inputs", "expr", "artifact", "contract", "errors", "evidence", "executorch", "precompiled",
    "case", "localization", "report", "run",
)  # fmt: skip
_FLOATS = {
    "NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf,
    # As the worker writes them.
    "nan": math.nan, "inf": math.inf, "-inf": -math.inf,
}  # fmt: skip


class RecordError(ValueError):
    """The JSON is not the record that it should be; the text names the place."""


def to_json(value: object) -> JsonValue:
    """``value`` with its records as objects. Infinite numbers become texts, functions None."""
    match value:
        case None | bool() | str():
            return value
        case enum.Enum():
            return to_json(value.value)
        case int():
            return int(value)
        case float():
            if math.isfinite(value):
                return value
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Mapping():
            return {str(key): to_json(item) for key, item in value.items()}
        case frozenset() | set():
            return [to_json(item) for item in sorted(value, key=str)]
        case Sequence():
            return [to_json(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {item.name: to_json(getattr(value, item.name)) for item in fields(value)}
    return None


def from_json(kind: type[T], value: JsonValue) -> T:
    """The record of type ``kind`` that ``value`` holds. Raises ``RecordError``."""
    try:
        return cast("T", _read(kind, value, kind.__name__, {}))
    except RecursionError as error:
        raise RecordError("nested too deep") from error


def _read(hint: Hint, value: JsonValue, place: str, bound: Bound) -> object:
    if hint is object:
        return value
    if isinstance(hint, TypeVar):
        return _read(bound[hint], value, place, bound) if hint in bound else value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(arguments, value, place, bound)
    if isinstance(origin, type):
        return _generic(origin, arguments, value, place, bound)
    if isinstance(hint, type):
        return _plain(hint, value, place)
    raise RecordError(f"{place}: this type cannot be read")


def _union(options: Sequence[Hint], value: JsonValue, place: str, bound: Bound) -> object:
    if value is None and type(None) in options:
        return None
    others = [option for option in options if option is not type(None)]
    if len(others) == 1:
        return _read(others[0], value, place, bound)
    open_to = [option for option in options if _could_be(option, value, bound)]
    if len(open_to) > 1 and isinstance(value, int):
        open_to = [option for option in open_to if option is int] or open_to
    if not open_to:
        raise RecordError(f"{place}: {_describe_value(value)} fits none of its types")
    return _read(open_to[0], value, place, bound)


def _could_be(option: Hint, value: JsonValue, bound: Bound) -> bool:
    if isinstance(option, TypeVar):
        return option in bound and _could_be(bound[option], value, bound)
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
    known = {item.name for item in _fields(record)}
    needed = {item.name for item in _fields(record) if item.default is MISSING and item.default_factory is MISSING}
    # Among unions of records, one that explains every key; records of a newer version have more keys than that.
    return (
        needed <= value.keys() and bool(known & value.keys() or not value) and (value.keys() <= known or bool(needed))
    )


def _generic(origin: type, arguments: Sequence[Hint], value: JsonValue, place: str, bound: Bound) -> object:
    if is_dataclass(origin):
        parameters = cast("Sequence[TypeVar]", getattr(origin, "__parameters__", ()))
        inner = {
            name: (bound.get(one, one) if isinstance(one, TypeVar) else one)
            for name, one in zip(parameters, arguments, strict=False)
        }
        return _record(origin, value, place, inner)
    if issubclass(origin, Mapping):
        items = _object(value, place)
        kind = arguments[1]
        # A dict is JSON as it stands; a Mapping is a field of a record.
        return (
            items
            if origin is dict
            else {key: _read(kind, one, f"{place}[{key!r}]", bound) for key, one in items.items()}
        )
    if origin is list:
        return _array(value, place)
    if origin is frozenset:
        return frozenset(_read(arguments[0], one, place, bound) for one in _array(value, place))
    if origin is tuple:
        return _tuple(arguments, _array(value, place), place, bound)
    raise RecordError(f"{place}: this type cannot be read")


def _tuple(arguments: Sequence[Hint], values: Sequence[JsonValue], place: str, bound: Bound) -> tuple[object, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_read(arguments[0], one, f"{place}[{at}]", bound) for at, one in enumerate(values))
    if len(arguments) != len(values):
        raise RecordError(f"{place}: {len(values)} items, expected {len(arguments)}")
    return tuple(_read(kind, one, place, bound) for kind, one in zip(arguments, values, strict=True))


def _plain(kind: type, value: JsonValue, place: str) -> object:
    if is_dataclass(kind):
        return _record(kind, value, place, {})
    if issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError as error:
            raise RecordError(f"{place}: {_describe_value(value)} is unknown to this version") from error
    if not _could_be(kind, value, {}) and kind is not type(None):
        raise RecordError(f"{place}: {_describe_value(value)}, expected {kind.__name__}")
    if kind is float:
        return _FLOATS[value] if isinstance(value, str) else value
    if isinstance(value, int) and not -_INTEGERS < value < _INTEGERS:
        raise RecordError(f"{place}: a number of {value.bit_length()} bits")
    return value


def _record(kind: type, value: JsonValue, place: str, bound: Bound) -> object:
    items = _object(value, place)
    hints = _hints(kind)
    given: dict[str, object] = {}
    for item in _fields(kind):
        if item.name in items:
            given[item.name] = _read(hints[item.name], items[item.name], f"{place}.{item.name}", bound)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise RecordError(f"{place}.{item.name}: missing")
    maker = cast("Maker", kind)
    return maker(**given)


@lru_cache(maxsize=256)
def _hints(kind: type) -> dict[str, Hint]:
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
    hints = _hints(kind)
    return tuple(
        item
        for item in fields(kind)
        if not any(get_origin(one) is Callable for one in (hints[item.name], *get_args(hints[item.name])))
    )


def _object(value: JsonValue, place: str) -> JsonObject:
    if not isinstance(value, dict):
        raise RecordError(f"{place}: {_describe_value(value)}, expected an object")
    return value


def _array(value: JsonValue, place: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise RecordError(f"{place}: {_describe_value(value)}, expected a list")
    return value


def _describe_value(value: JsonValue) -> str:
    return type(value).__name__ if isinstance(value, (dict, list)) else str(value)[:40]
