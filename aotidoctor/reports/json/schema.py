"""The JSON Schema (draft 2020-12) of ``aotidoctor.report/1``, written by hand; ``aotidoctor schema`` prints it.

It states what a reader may rely on and leaves the rest open: minor versions only add, so unknown fields are allowed
everywhere and the texts of enumerations that may grow (probes, codes, causes) are patterns or plain strings.
"""

from __future__ import annotations

from aotidoctor.model.json_types import JsonObject
from aotidoctor.reports.json.case_schema import ARTIFACT, COMPAT, CONTRACT, HOST, INPUTS, NAMES
from aotidoctor.reports.json.schema_words import (
    COUNT,
    COUNT_OR_NULL,
    FLAG,
    ID,
    OPEN,
    SECONDS,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    array_of,
    each,
    nullable,
    one_of,
    record_of,
)

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
        "remedy": record_of({"text": TEXT, "command": TEXT, "verified": FLAG}),
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
