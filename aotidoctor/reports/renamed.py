"""A record with other words in the place of some: paths that were fetched, by the URLs that they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TypeVar, cast

T = TypeVar("T")


def renamed(value: T, words: Mapping[str, str]) -> T:
    """``value``, made of texts, containers and records, with each of ``words`` replaced in all texts."""
    return cast("T", _walk(value, words))


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
            given = {item.name: getattr(value, item.name) for item in fields(value) if item.init}
            changed = {name: _walk(item, words) for name, item in given.items()}
            different = {
                name: item for name, item in changed.items() if item is not given[name] and item != given[name]
            }
            return replace(value, **different) if different else value
    return value
