"""What JSON can hold, and the two readings of it that are wanted everywhere."""

from __future__ import annotations

JsonValue = str | int | float | bool | None | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]


def items(value: JsonValue) -> list[JsonValue]:
    """A list out of JSON; empty for anything else."""
    return value if isinstance(value, list) else []


def objects(value: JsonValue) -> list[JsonObject]:
    """The objects in a list; empty for anything else."""
    return [item for item in items(value) if isinstance(item, dict)]
