"""Define the JSON Schemas (draft 2020-12) of ``aotidoctor.report/1`` and ``aotidoctor.diff/1``; see `schema`.

They are written by hand. They state what a reader may rely on and leave the rest open: minor versions only add, so
unknown fields are allowed everywhere, and the texts of enumerations that may grow (probes, codes, causes) are patterns
or plain strings.
"""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.fleet import DIFFERENCE_SCHEMA, LEVELS
from aotidoctor.model.record import JsonObject, JsonValue

# Parts of schemas.
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
    """Allow null besides the given schema."""
    return {"anyOf": [schema, {"type": "null"}]}


def one_of(*values: str | None) -> JsonObject:
    """One of a few texts."""
    return {"enum": list(values)}


def each(names: str, kind: JsonObject) -> dict[str, JsonObject]:
    """Properties of one kind."""
    return dict.fromkeys(names.split(), kind)


# The file, the contract, the inputs and the host.
ARTIFACT = nullable(
    record_of(
        {"path": TEXT, "kind": TEXT, "size": COUNT, "models": array_of(record_of({"name": TEXT, "layout": TEXT}))},
        optional={
            "sha256": TEXT_OR_NULL,
            "n_members": COUNT,
            "problem": TEXT_OR_NULL,
            "counts": OPEN,
            "other_contents": TEXTS,
            "stamp": OPEN,
            "executorch": OPEN,
            "precompiled": OPEN,
        },
    )
)

_DIM = record_of({"static": COUNT_OR_NULL, **each("min max", {"type": ["integer", "null"]}), "expr": TEXT_OR_NULL})

_LEAF = record_of(
    {
        "index": COUNT,
        "path": TEXT,
        "kind": one_of("tensor", "constant", "unknown"),
        "input_index": COUNT_OR_NULL,
        "dtype": TEXT_OR_NULL,
        "rank": COUNT_OR_NULL,
        "dims": nullable(array_of(_DIM)),
        "strides": nullable({"type": "array", "items": {"type": ["integer", "null"]}}),
        "device_type": TEXT_OR_NULL,
    },
    optional={"generated_name": TEXT_OR_NULL, "triton_names": TEXTS, "used": FLAG_OR_NULL},
)

CONTRACT = nullable(
    record_of(
        {
            **each("model_name source", TEXT),
            "n_inputs": COUNT,
            **each("n_outputs n_constants", COUNT_OR_NULL),
            "leaves": array_of(_LEAF),
            **each("outputs symbols constants kernels", array_of(OPEN)),
            "custom_ops": TEXTS,
            "needs": OPEN,
            "weights": TEXT,
            "unknown_lines": COUNT,
        },
        optional={
            "unread": array_of(record_of({"part": TEXT, "fact": TEXT, "count": COUNT, "line": COUNT, "example": TEXT}))
        },
    )
)

_INPUT_LEAF: JsonObject = {
    "anyOf": [
        record_of(
            {
                "path": TEXT,
                "kind": {"const": "tensor"},
                "dtype": TEXT,
                "shape": array_of(COUNT),
                "stride": nullable(array_of({"type": "integer"})),
                "device": TEXT,
            }
        ),
        record_of({"path": TEXT, "kind": {"const": "plain"}, "type": TEXT, "text": TEXT}),
    ]
}

INPUTS = nullable(
    record_of(
        {"path": TEXT_OR_NULL, "leaves": array_of(_INPUT_LEAF), "problem": TEXT_OR_NULL},
        optional={"format": TEXT, "form": TEXT, "sha256": TEXT_OR_NULL, "cause": TEXT_OR_NULL, "notes": TEXTS},
    )
)

HOST = record_of(
    {**each("system machine python", TEXT), "torch": nullable(record_of({"version": TEXT}))},
    optional={"cores": COUNT, "threads": COUNT, "gpus": array_of(OPEN), "environment": OPEN, "tools": OPEN},
)

_NAME_ROW = record_of(
    {"slot": COUNT, "ordinal": TEXT, "forward": TEXT_OR_NULL, "path": TEXT, "kind": TEXT},
    optional={"dtype": TEXT_OR_NULL, "data_type": TEXT_OR_NULL, "lost": FLAG},
)

NAMES = record_of(
    {"release": TEXT, "servable": FLAG, "inputs": array_of(_NAME_ROW), "outputs": array_of(_NAME_ROW)},
    optional={"obstacles": array_of(OPEN)},
)

COMPAT = record_of(
    {
        "needs": array_of(
            record_of({"package": TEXT}, optional={"torch_least": TEXT_OR_NULL, "built_least": TEXT_OR_NULL})
        ),
        "answers": array_of(
            record_of(
                {"package": TEXT, "host": TEXT, "answer": one_of("runs", "refused", "unknown")},
                optional=each("because causes unknown provided", TEXTS),
            )
        ),
    }
)


# The report.
_SOURCE = nullable(
    {
        "anyOf": [
            record_of({"file": TEXT, "line": COUNT_OR_NULL}, optional={"column": COUNT}),
            record_of({"run": {"type": "string", "pattern": ID}, "stream": TEXT, "line": COUNT_OR_NULL}),
        ]
    }
)

_DIAGNOSIS = record_of(
    {
        "cause": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        "rank": {"type": "integer", "minimum": 1},
        "status": one_of("confirmed", "confirmed-in-emulation", "suspected"),
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "title": TEXT,
        "looked_like": TEXT,
        "subject": TEXT_OR_NULL,
        "evidence": TEXTS,
        "remedy": record_of({"text": TEXT, "command": TEXT, "verified": FLAG, "tried": TEXT}),
        "playbook": TEXT,
    },
    optional={"severity": one_of("info", "warn", "error"), "confirmation": TEXT, "would_confirm": TEXT},
)

_FINDING = record_of(
    {
        "id": TEXT,
        "code": {"type": "string", "pattern": "^[A-Z]+(-[A-Z0-9]+)+$"},
        "severity": one_of("info", "warn", "error"),
        "subject": TEXT_OR_NULL,
        "observed": TEXT,
        "expected": TEXT,
        "source": _SOURCE,
    },
    optional={"kind": TEXT, "message": TEXT, "facts": OPEN},
)

_RUN = record_of(
    {
        "id": TEXT,
        "probe": TEXT,
        "argv": TEXTS,
        "env": {"type": "object", "additionalProperties": TEXT_OR_NULL},
        "took_effect": {"enum": [True, False, "unknown"]},
        "took_effect_why": TEXT,
        "ending": one_of("exited", "signalled", "timed-out", "out-of-memory", "not-started"),
        "signal": TEXT_OR_NULL,
        "exit_code": {"type": ["integer", "null"]},
        "seconds": SECONDS,
        **each("stdout_tail stderr_tail", TEXT),
    },
    optional={
        **each("purpose ending_why stage", TEXT),
        "stages_s": {"type": "object", "additionalProperties": SECONDS},
        "error": nullable(record_of(each("type message traceback", TEXT))),
        "warnings": TEXTS,
        "outputs": array_of(OPEN),
        "applied": {"type": "array"},
        **each("stdout_bytes stderr_bytes", COUNT),
        "peak_rss_bytes": COUNT_OR_NULL,
        "fresh_process": FLAG,
    },
)

_MEASURE: JsonObject = {"anyOf": [{"type": ["number", "null"]}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_COMPARISON = record_of(
    {
        **each("path verdict dtype reference_dtype", TEXT),
        **each("shape reference_shape", array_of(COUNT)),
        **each("max_abs max_rel error reference_error", _MEASURE),
        "needed": array_of({"type": "array", "items": _MEASURE, "minItems": 2, "maxItems": 2}),
    },
    optional={
        **each("noise allowed", _MEASURE),
        **each("nan reference_nan inf reference_inf", COUNT),
        "nan_differs": FLAG,
        "judged": TEXT_OR_NULL,
        **each("numel far", COUNT),
        **each("rtol atol", _MEASURE),
        "asked": FLAG,
        "reason": TEXT_OR_NULL,
    },
)

_CUSTODY_STAGE = record_of(
    {**each("name verdict observed", TEXT), **each("against operator where run", TEXT_OR_NULL), "first": FLAG}
)

_LOCALIZATION = nullable(
    record_of(
        {"culprit": TEXT_OR_NULL, "how": TEXT, "chain": TEXT_OR_NULL},
        optional={
            "check": nullable(record_of({"index": COUNT, "function": TEXT_OR_NULL})),
            "timeline": array_of(record_of({"name": TEXT, "kind": TEXT, "call": COUNT, "state": TEXT})),
            "calls_total": COUNT,
            "frames": array_of(record_of({"index": COUNT, "function": TEXT_OR_NULL})),
            **each("fault_address fault_target", TEXT_OR_NULL),
            "values": array_of(record_of({"index": COUNT, "name": TEXT, "kind": TEXT, "buffers": array_of(OPEN)})),
            "notes": TEXTS,
            **each("first_bad bisected", TEXT_OR_NULL),
            "comparison": array_of(_COMPARISON),
            "stages": array_of(_CUSTODY_STAGE),
        },
    )
)


_STAGES = ("artifact", "host", "load", "inputs", "run", "output", "export", "compile", "link", "package", "serve")
_FINGERPRINT = record_of(
    {
        "version": COUNT,
        "family": TEXT,
        "exact": TEXT,
        "parts": array_of(record_of({"rule": TEXT, "text": TEXT, "granularity": one_of("family", "exact")})),
    }
)
_LOG_EVENT = record_of(
    {"form": TEXT, "first": COUNT, "last": COUNT, "text": TEXT},
    optional={"origin": TEXT, "stage": TEXT, "count": COUNT, "echo_of": COUNT_OR_NULL, "tainted": FLAG},
)
_LOG = record_of(
    {"name": TEXT, "size": COUNT, "lines": COUNT, "events": array_of(_LOG_EVENT)},
    optional={"matches": array_of(OPEN), "more_events": COUNT, "versions": OPEN, "problems": TEXTS},
)


_NOTE = record_of({"text": TEXT, "at": TEXT, "solved": FLAG})
_HISTORY = record_of(
    {"of": one_of("exact", "family"), "count": COUNT, "since": TEXT, "last": TEXT},
    optional={"host_class": TEXT, "solved": nullable(_NOTE), "notes": COUNT, "number": COUNT},
)


def schema() -> JsonObject:
    """The JSON Schema document."""
    body = record_of(
        {
            "schema": {"const": "aotidoctor.report/1"},
            "tool": record_of({"name": {"const": "aotidoctor"}, "version": TEXT, "argv": TEXTS}),
            "verdict": one_of("healthy", "problem", "unknown"),
            "stage": one_of(*_STAGES, None),
            "diagnoses": array_of(_DIAGNOSIS),
            "findings": array_of(_FINDING),
            "not_checked": array_of(record_of(each("code name reason", TEXT), optional={"moot": FLAG})),
            "runs": array_of(_RUN),
            "artifact": ARTIFACT,
            "contract": CONTRACT,
            "inputs": INPUTS,
            "host": HOST,
            "signature": TEXT_OR_NULL,
        },
        optional={
            "command": TEXT,
            "started": {"type": "string", "format": "date-time", "pattern": "^[0-9T:.-]+Z$"},
            "duration_s": SECONDS,
            "plan": TEXTS,
            "localization": _LOCALIZATION,
            **each("interrupted out_of_time", FLAG),
            **each("cannot_examine internal_error", TEXT_OR_NULL),
            "extra": OPEN,
            "names": NAMES,
            "compat": COMPAT,
            "history": _HISTORY,
            "fingerprint": nullable(_FINGERPRINT),
            "log": nullable(_LOG),
        },
    )
    head: JsonObject = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:aotidoctor:report:1",
        "title": "aotidoctor.report/1",
        "description": "Result of one aotidoctor command. Minor versions only add; readers ignore unknown fields.",
    }
    return head | body


# The comparison of two documents.
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


def difference_schema() -> JsonObject:
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
