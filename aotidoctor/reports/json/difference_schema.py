"""The JSON Schema (draft 2020-12) of ``aotidoctor.diff/1``; ``aotidoctor schema diff`` prints it.

Like that of reports it says what a reader may rely on, and leaves the rest open.
"""

from __future__ import annotations

from aotidoctor.model.difference import DIFFERENCE_SCHEMA, LEVELS
from aotidoctor.model.json_types import JsonObject
from aotidoctor.reports.json.schema_words import TEXT, TEXT_OR_NULL, TEXTS, array_of, each, one_of, record_of

_COUNTS: JsonObject = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}


_SIDE = record_of(
    {
        "label": one_of("A", "B"),
        "name": TEXT,
        "kind": one_of("report", "bundle", "package", "host"),
        "parts": TEXTS,
        "verdict": TEXT_OR_NULL,
        "causes": TEXTS,
        **each("version made", TEXT),
    }
)
_DIFFERENCE = record_of(
    {
        "rank": {"type": "integer", "minimum": 1},
        "area": one_of("host", "package", "inputs", "outcome", "fit"),
        **each("subject a b", TEXT),
        "level": one_of(*LEVELS),
        "why": TEXT,
        "playbook": TEXT_OR_NULL,
        "codes": TEXTS,
        "diagnosed": one_of("", "A", "B"),
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
            "differences": array_of(_DIFFERENCE),
            **each("equal left_out", _COUNTS),
            "unknown": TEXTS,
        }
    )
    refused = record_of({"schema": {"const": DIFFERENCE_SCHEMA}, "tool": tool, "same": {"type": "null"}})
    refused["anyOf"] = [{"required": [reason]} for reason in ("cannot_examine", "internal_error", "out_of_time")]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:aotidoctor:diff:1",
        "title": DIFFERENCE_SCHEMA,
        "description": "Result of aotidoctor diff. Minor versions only add; readers ignore unknown fields.",
        "anyOf": [compared, refused],
    }
