"""The JSON Schema (draft 2020-12) of ``aotidoctor.diff/1``; ``aotidoctor schema diff`` prints it.

Like that of reports it says what a reader may rely on, and leaves the rest open.
"""

from __future__ import annotations

from aotidoctor.model.difference import DIFFERENCE_SCHEMA, LEVELS
from aotidoctor.model.json_types import JsonObject, JsonValue

_TEXT: JsonObject = {"type": "string"}
_TEXT_OR_NULL: JsonObject = {"type": ["string", "null"]}
_TEXTS: JsonObject = {"type": "array", "items": {"type": "string"}}
_COUNTS: JsonObject = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}


def _record(fields: JsonObject) -> JsonObject:
    required: list[JsonValue] = [*fields]
    return {"type": "object", "properties": fields, "required": required}


_SIDE = _record(
    {
        "label": {"enum": ["A", "B"]},
        "name": _TEXT,
        "kind": {"enum": ["report", "bundle", "package", "host"]},
        "parts": _TEXTS,
        "verdict": _TEXT_OR_NULL,
        "causes": _TEXTS,
        "version": _TEXT,
        "made": _TEXT,
    }
)
_DIFFERENCE = _record(
    {
        "rank": {"type": "integer", "minimum": 1},
        "area": {"enum": ["host", "package", "inputs", "outcome", "fit"]},
        "subject": _TEXT,
        "a": _TEXT,
        "b": _TEXT,
        "level": {"enum": list(LEVELS)},
        "why": _TEXT,
        "playbook": _TEXT_OR_NULL,
        "codes": _TEXTS,
        "diagnosed": {"enum": ["", "A", "B"]},
        "evidence": _TEXTS,
    }
)


def schema() -> JsonObject:
    """The JSON Schema document: a comparison, or why there is none."""
    tool = _record({"name": {"const": "aotidoctor"}, "version": _TEXT})
    compared = _record(
        {
            "schema": {"const": DIFFERENCE_SCHEMA},
            "tool": tool,
            "same": {"type": "boolean"},
            "a": _SIDE,
            "b": _SIDE,
            "differences": {"type": "array", "items": _DIFFERENCE},
            "equal": _COUNTS,
            "left_out": _COUNTS,
            "unknown": _TEXTS,
        }
    )
    refused = _record({"schema": {"const": DIFFERENCE_SCHEMA}, "tool": tool, "same": {"type": "null"}})
    reasons: list[JsonValue] = [
        {"required": ["cannot_examine"]},
        {"required": ["internal_error"]},
        {"required": ["out_of_time"]},
    ]
    refused["anyOf"] = reasons
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:aotidoctor:diff:1",
        "title": DIFFERENCE_SCHEMA,
        "description": "Result of aotidoctor diff. Minor versions only add; readers ignore unknown fields.",
        "anyOf": [compared, refused],
    }
