"""Bytes of a package to text and JSON, whatever they are. Nothing here raises for content."""

from __future__ import annotations

import json

from aotidoctor.model.json_types import JsonValue


class JsonError(ValueError):
    """The bytes are not the JSON that was expected; the text says why."""


def decode(data: bytes) -> str:
    """UTF-8 with replacement characters."""
    return data.decode("utf-8", "replace")


def clean(text: str) -> str:
    """Without lone surrogates: JSON escapes can make strings that no stream can print."""
    return text.encode("utf-8", "replace").decode("utf-8")


def parse_json(data: bytes) -> JsonValue:
    """Parse JSON. Raises ``JsonError`` for anything else, also for nesting too deep and numbers too long."""
    try:
        value: JsonValue = json.loads(data)
    except RecursionError as error:
        raise JsonError("nested too deep") from error
    except ValueError as error:
        raise JsonError(clean(str(error))) from error
    return value


def as_text(value: JsonValue) -> str:
    """The value if it is a string (cleaned), else an empty one."""
    return clean(value) if isinstance(value, str) else ""
