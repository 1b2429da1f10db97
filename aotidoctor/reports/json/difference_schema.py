"""The JSON Schema (draft 2020-12) of ``aotidoctor.diff/1``; ``aotidoctor schema diff`` prints it.

Like that of reports it says what a reader may rely on, and leaves the rest open.
"""

from __future__ import annotations

from aotidoctor.model.difference import DIFFERENCE_SCHEMA, LEVELS
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.reports.json.schema_words import TEXT, TEXT_OR_NULL, TEXTS, each, record_of

_COUNTS: JsonObject = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}


_SIDE = record_of(
    {
        "label": {"enum": ["A", "B"]},
        "name": TEXT,
        "kind": {"enum": ["report", "bundle", "package", "host"]},
        "parts": TEXTS,
        "verdict": TEXT_OR_NULL,
        "causes": TEXTS,
        "version": TEXT,
        "made": TEXT,
    }
)
_DIFFERENCE = record_of(
    {
        "rank": {"type": "integer", "minimum": 1},
        "area": {"enum": ["host", "package", "inputs", "outcome", "fit"]},
        **each("subject a b", TEXT),
        "level": {"enum": list(LEVELS)},
        "why": TEXT,
        "playbook": TEXT_OR_NULL,
        "codes": TEXTS,
        "diagnosed": {"enum": ["", "A", "B"]},
        "evidence": TEXTS,
    }
)


def schema() -> JsonObject:
    """The JSON Schema document: a comparison, or why there is none."""
    tool = record_of({"name": {"const": "aotidoctor"}, "version": TEXT})
    compared = record_of(
        {
            "schema": {"const": DIFFERENCE_SCHEMA},
            "tool": tool,
            "same": {"type": "boolean"},
            "a": _SIDE,
            "b": _SIDE,
            "differences": {"type": "array", "items": _DIFFERENCE},
            "equal": _COUNTS,
            "left_out": _COUNTS,
            "unknown": TEXTS,
        }
    )
    refused = record_of({"schema": {"const": DIFFERENCE_SCHEMA}, "tool": tool, "same": {"type": "null"}})
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
