"""What JSON can hold, and the readings of it that are wanted everywhere."""

from __future__ import annotations

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
