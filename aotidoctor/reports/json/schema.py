"""The JSON Schema (draft 2020-12) of ``aotidoctor.report/1``, written by hand; ``aotidoctor schema`` prints it.

It states what a reader may rely on and leaves the rest open: minor versions only add, so unknown fields are allowed
everywhere and the texts of enumerations that may grow (probes, codes, causes) are patterns or plain strings.
"""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.json_types import JsonObject, JsonValue

_TEXT: JsonObject = {"type": "string"}
_TEXT_OR_NULL: JsonObject = {"type": ["string", "null"]}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_COUNT_OR_NULL: JsonObject = {"type": ["integer", "null"], "minimum": 0}
_FLAG: JsonObject = {"type": "boolean"}
_FLAG_OR_NULL: JsonObject = {"type": ["boolean", "null"]}
_SECONDS: JsonObject = {"type": "number", "minimum": 0}
_TEXTS: JsonObject = {"type": "array", "items": {"type": "string"}}
_OPEN: JsonObject = {"type": "object"}
_ID = "^[A-Z][0-9]+$"


def _record(fields: Mapping[str, JsonObject], *, optional: Mapping[str, JsonObject] | None = None) -> JsonObject:
    """An object that has all of ``fields``, may have ``optional`` ones, and may have more."""
    properties: JsonObject = {**fields, **(optional or {})}
    required: list[JsonValue] = [*fields]
    return {"type": "object", "properties": properties, "required": required}


def _array(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


def _nullable(schema: JsonObject) -> JsonObject:
    return {"anyOf": [schema, {"type": "null"}]}


def _one_of(*values: str | None) -> JsonObject:
    return {"enum": list(values)}


_SOURCE = _nullable(
    {
        "anyOf": [
            _record({"file": _TEXT, "line": _COUNT_OR_NULL}, optional={"column": _COUNT}),
            _record({"run": {"type": "string", "pattern": _ID}, "stream": _TEXT, "line": _COUNT_OR_NULL}),
        ]
    }
)

_DIAGNOSIS = _record(
    {
        "cause": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        "rank": {"type": "integer", "minimum": 1},
        "status": _one_of("confirmed", "confirmed-in-emulation", "suspected"),
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "title": _TEXT,
        "looked_like": _TEXT,
        "subject": _TEXT_OR_NULL,
        "evidence": _TEXTS,
        "remedy": _record({"text": _TEXT, "command": _TEXT, "verified": _FLAG}),
        "playbook": _TEXT,
    },
    optional={"severity": _one_of("info", "warn", "error"), "confirmation": _TEXT, "would_confirm": _TEXT},
)

_FINDING = _record(
    {
        "id": _TEXT,
        "code": {"type": "string", "pattern": "^[A-Z]+(-[A-Z0-9]+)+$"},
        "severity": _one_of("info", "warn", "error"),
        "subject": _TEXT_OR_NULL,
        "observed": _TEXT,
        "expected": _TEXT,
        "source": _SOURCE,
    },
    optional={"kind": _TEXT, "message": _TEXT, "facts": _OPEN},
)

_RUN = _record(
    {
        "id": _TEXT,
        "probe": _TEXT,
        "argv": _TEXTS,
        "env": {"type": "object", "additionalProperties": _TEXT_OR_NULL},
        "took_effect": {"enum": [True, False, "unknown"]},
        "took_effect_why": _TEXT,
        "ending": _one_of("exited", "signalled", "timed-out", "out-of-memory", "not-started"),
        "signal": _TEXT_OR_NULL,
        "exit_code": {"type": ["integer", "null"]},
        "seconds": _SECONDS,
        "stdout_tail": _TEXT,
        "stderr_tail": _TEXT,
    },
    optional={
        "purpose": _TEXT,
        "ending_why": _TEXT,
        "stage": _TEXT,
        "stages_s": {"type": "object", "additionalProperties": _SECONDS},
        "error": _nullable(_record({"type": _TEXT, "message": _TEXT, "traceback": _TEXT})),
        "warnings": _TEXTS,
        "outputs": _array(_OPEN),
        "applied": {"type": "array"},
        "stdout_bytes": _COUNT,
        "stderr_bytes": _COUNT,
        "peak_rss_bytes": _COUNT_OR_NULL,
        "fresh_process": _FLAG,
    },
)

_MEASURE: JsonObject = {"anyOf": [{"type": ["number", "null"]}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_COMPARISON = _record(
    {
        "path": _TEXT,
        "verdict": _TEXT,
        "dtype": _TEXT,
        "reference_dtype": _TEXT,
        "shape": _array(_COUNT),
        "reference_shape": _array(_COUNT),
        "max_abs": _MEASURE,
        "max_rel": _MEASURE,
        "error": _MEASURE,
        "reference_error": _MEASURE,
        "needed": _array({"type": "array", "items": _MEASURE, "minItems": 2, "maxItems": 2}),
    },
    optional={
        "noise": _MEASURE,
        "allowed": _MEASURE,
        "nan": _COUNT,
        "reference_nan": _COUNT,
        "inf": _COUNT,
        "reference_inf": _COUNT,
        "nan_differs": _FLAG,
        "judged": _TEXT_OR_NULL,
        "numel": _COUNT,
        "far": _COUNT,
        "rtol": _MEASURE,
        "atol": _MEASURE,
        "asked": _FLAG,
        "reason": _TEXT_OR_NULL,
    },
)

_LOCALIZATION = _nullable(
    _record(
        {"culprit": _TEXT_OR_NULL, "how": _TEXT, "chain": _TEXT_OR_NULL},
        optional={
            "timeline": _array(_record({"name": _TEXT, "kind": _TEXT, "call": _COUNT, "state": _TEXT})),
            "calls_total": _COUNT,
            "frames": _array(_record({"index": _COUNT, "function": _TEXT_OR_NULL})),
            "fault_address": _TEXT_OR_NULL,
            "fault_target": _TEXT_OR_NULL,
            "values": _array(_record({"index": _COUNT, "name": _TEXT, "kind": _TEXT, "buffers": _array(_OPEN)})),
            "notes": _TEXTS,
            "first_bad": _TEXT_OR_NULL,
            "bisected": _TEXT_OR_NULL,
            "comparison": _array(_COMPARISON),
        },
    )
)

_ARTIFACT = _nullable(
    _record(
        {"path": _TEXT, "kind": _TEXT, "size": _COUNT, "models": _array(_record({"name": _TEXT, "layout": _TEXT}))},
        optional={
            "sha256": _TEXT_OR_NULL,
            "n_members": _COUNT,
            "problem": _TEXT_OR_NULL,
            "counts": _OPEN,
            "other_contents": _TEXTS,
            "stamp": _OPEN,
        },
    )
)

_DIM = _record(
    {
        "static": _COUNT_OR_NULL,
        "min": {"type": ["integer", "null"]},
        "max": {"type": ["integer", "null"]},
        "expr": _TEXT_OR_NULL,
    }
)

_LEAF = _record(
    {
        "index": _COUNT,
        "path": _TEXT,
        "kind": _one_of("tensor", "constant", "unknown"),
        "input_index": _COUNT_OR_NULL,
        "dtype": _TEXT_OR_NULL,
        "rank": _COUNT_OR_NULL,
        "dims": _nullable(_array(_DIM)),
        "strides": _nullable({"type": "array", "items": {"type": ["integer", "null"]}}),
        "device_type": _TEXT_OR_NULL,
    },
    optional={"generated_name": _TEXT_OR_NULL, "triton_names": _TEXTS, "used": _FLAG_OR_NULL},
)

_CONTRACT = _nullable(
    _record(
        {
            "model_name": _TEXT,
            "source": _TEXT,
            "n_inputs": _COUNT,
            "n_outputs": _COUNT_OR_NULL,
            "n_constants": _COUNT_OR_NULL,
            "leaves": _array(_LEAF),
            "outputs": _array(_OPEN),
            "symbols": _array(_OPEN),
            "constants": _array(_OPEN),
            "kernels": _array(_OPEN),
            "custom_ops": _TEXTS,
            "needs": _OPEN,
            "weights": _TEXT,
            "unknown_lines": _COUNT,
        },
        optional={
            "unread": _array(_record({"part": _TEXT, "fact": _TEXT, "count": _COUNT, "line": _COUNT, "example": _TEXT}))
        },
    )
)

_INPUT_LEAF: JsonObject = {
    "anyOf": [
        _record(
            {
                "path": _TEXT,
                "kind": {"const": "tensor"},
                "dtype": _TEXT,
                "shape": _array(_COUNT),
                "stride": _nullable(_array({"type": "integer"})),
                "device": _TEXT,
            }
        ),
        _record({"path": _TEXT, "kind": {"const": "plain"}, "type": _TEXT, "text": _TEXT}),
    ]
}

_INPUTS = _nullable(
    _record(
        {"path": _TEXT_OR_NULL, "leaves": _array(_INPUT_LEAF), "problem": _TEXT_OR_NULL},
        optional={"format": _TEXT, "form": _TEXT, "sha256": _TEXT_OR_NULL, "cause": _TEXT_OR_NULL, "notes": _TEXTS},
    )
)

_HOST = _record(
    {"system": _TEXT, "machine": _TEXT, "python": _TEXT, "torch": _nullable(_record({"version": _TEXT}))},
    optional={"cores": _COUNT, "threads": _COUNT, "gpus": _array(_OPEN), "environment": _OPEN, "tools": _OPEN},
)

_NAME_ROW = _record(
    {"slot": _COUNT, "ordinal": _TEXT, "forward": _TEXT_OR_NULL, "path": _TEXT, "kind": _TEXT},
    optional={"dtype": _TEXT_OR_NULL, "data_type": _TEXT_OR_NULL, "lost": _FLAG},
)
_NAMES = _record(
    {"release": _TEXT, "servable": _FLAG, "inputs": _array(_NAME_ROW), "outputs": _array(_NAME_ROW)},
    optional={"obstacles": _array(_OPEN)},
)

_COMPAT = _record(
    {
        "needs": _array(
            _record({"package": _TEXT}, optional={"torch_least": _TEXT_OR_NULL, "built_least": _TEXT_OR_NULL})
        ),
        "answers": _array(
            _record(
                {"package": _TEXT, "host": _TEXT, "answer": _one_of("runs", "refused", "unknown")},
                optional={"because": _TEXTS, "causes": _TEXTS, "unknown": _TEXTS, "provided": _TEXTS},
            )
        ),
    }
)

_STAGES = ("artifact", "host", "load", "inputs", "run", "output", "export", "compile", "link", "package", "serve")
_FINGERPRINT = _record(
    {
        "version": _COUNT,
        "family": _TEXT,
        "exact": _TEXT,
        "parts": _array(_record({"rule": _TEXT, "text": _TEXT, "granularity": _one_of("family", "exact")})),
    }
)
_LOG_EVENT = _record(
    {"form": _TEXT, "first": _COUNT, "last": _COUNT, "text": _TEXT},
    optional={"origin": _TEXT, "stage": _TEXT, "count": _COUNT, "echo_of": _COUNT_OR_NULL, "tainted": _FLAG},
)
_LOG = _record(
    {"name": _TEXT, "size": _COUNT, "lines": _COUNT, "events": _array(_LOG_EVENT)},
    optional={"matches": _array(_OPEN), "more_events": _COUNT, "versions": _OPEN, "problems": _TEXTS},
)


_NOTE = _record({"text": _TEXT, "at": _TEXT, "solved": _FLAG})
_HISTORY = _record(
    {"of": _one_of("exact", "family"), "count": _COUNT, "since": _TEXT, "last": _TEXT},
    optional={"host_class": _TEXT, "solved": _nullable(_NOTE), "notes": _COUNT, "number": _COUNT},
)


def schema() -> JsonObject:
    """The JSON Schema document."""
    body = _record(
        {
            "schema": {"const": "aotidoctor.report/1"},
            "tool": _record({"name": {"const": "aotidoctor"}, "version": _TEXT, "argv": _TEXTS}),
            "verdict": _one_of("healthy", "problem", "unknown"),
            "stage": _one_of(*_STAGES, None),
            "diagnoses": _array(_DIAGNOSIS),
            "findings": _array(_FINDING),
            "not_checked": _array(
                _record({"code": _TEXT, "name": _TEXT, "reason": _TEXT}, optional={"moot": {"type": "boolean"}})
            ),
            "runs": _array(_RUN),
            "artifact": _ARTIFACT,
            "contract": _CONTRACT,
            "inputs": _INPUTS,
            "host": _HOST,
            "signature": _TEXT_OR_NULL,
        },
        optional={
            "command": _TEXT,
            "started": {"type": "string", "format": "date-time", "pattern": "^[0-9T:.-]+Z$"},
            "duration_s": _SECONDS,
            "plan": _TEXTS,
            "localization": _LOCALIZATION,
            "interrupted": _FLAG,
            "out_of_time": _FLAG,
            "cannot_examine": _TEXT_OR_NULL,
            "internal_error": _TEXT_OR_NULL,
            "extra": _OPEN,
            "names": _NAMES,
            "compat": _COMPAT,
            "history": _HISTORY,
            "fingerprint": _nullable(_FINGERPRINT),
            "log": _nullable(_LOG),
        },
    )
    head: JsonObject = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:aotidoctor:report:1",
        "title": "aotidoctor.report/1",
        "description": "Result of one aotidoctor command. Minor versions only add; readers ignore unknown fields.",
    }
    return head | body
