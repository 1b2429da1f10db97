"""What the schemas of all documents are made of."""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.json_types import JsonObject, JsonValue

TEXT: JsonObject = {"type": "string"}
TEXT_OR_NULL: JsonObject = {"type": ["string", "null"]}
COUNT: JsonObject = {"type": "integer", "minimum": 0}
COUNT_OR_NULL: JsonObject = {"type": ["integer", "null"], "minimum": 0}
FLAG: JsonObject = {"type": "boolean"}
FLAG_OR_NULL: JsonObject = {"type": ["boolean", "null"]}
SECONDS: JsonObject = {"type": "number", "minimum": 0}
TEXTS: JsonObject = {"type": "array", "items": {"type": "string"}}
OPEN: JsonObject = {"type": "object"}
ID = "^[A-Z][0-9]+$"


def record_of(fields: Mapping[str, JsonObject], *, optional: Mapping[str, JsonObject] | None = None) -> JsonObject:
    """An object that has all of ``fields``, may have ``optional`` ones, and may have more."""
    properties: JsonObject = {**fields, **(optional or {})}
    required: list[JsonValue] = [*fields]
    return {"type": "object", "properties": properties, "required": required}


def array_of(items: JsonObject) -> JsonObject:
    """A list of such items."""
    return {"type": "array", "items": items}


def nullable(schema: JsonObject) -> JsonObject:
    """That, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def one_of(*values: str | None) -> JsonObject:
    """One of a few texts."""
    return {"enum": list(values)}


def each(names: str, kind: JsonObject) -> dict[str, JsonObject]:
    """Properties of one kind."""
    return dict.fromkeys(names.split(), kind)
