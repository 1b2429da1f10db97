"""A record with other words in the place of some: paths that were fetched, by the URLs that they came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TypeVar, cast

T = TypeVar("T")


def renamed(value: T, words: Mapping[str, str]) -> T:
    """``value``, made of texts, containers and records, with each of ``words`` replaced in all texts."""
    return cast("T", _walk(value, words))


def with_fields(value: T, change: Callable[[str, object], object]) -> T:
    """A record with what ``change`` makes of each field and its name; the very same one where nothing differs."""
    changed: dict[str, object] = {}
    for item in fields(value):  # type: ignore[arg-type]  # the caller has asked is_dataclass
        before = getattr(value, item.name)
        after = change(item.name, before)
        if after is not before and after != before:
            changed[item.name] = after
    return replace(value, **changed) if changed else value  # type: ignore[type-var]


def _walk(value: object, words: Mapping[str, str]) -> object:
    match value:
        case str() if not isinstance(value, Enum):
            for word, other in words.items():
                value = value.replace(word, other)
            return value
        case Mapping():
            return {_walk(key, words): _walk(item, words) for key, item in value.items()}
        case tuple() | list():
            items = [_walk(item, words) for item in value]
            return items if isinstance(value, list) else tuple(items)
        case frozenset():
            return frozenset(_walk(item, words) for item in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return with_fields(value, lambda _, item: _walk(item, words))
    return value
