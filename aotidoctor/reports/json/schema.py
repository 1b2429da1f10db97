"""Define the JSON Schemas (draft 2020-12) of ``aotidoctor.report/1`` and ``aotidoctor.diff/1``; see `schema`.

Which fields a reader may rely on is written here; their types are those of the records. The rest is open: minor
versions only add, so unknown fields are allowed everywhere, and the texts of enumerations that may grow (probes, codes,
causes) are patterns or plain strings.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Union, get_args, get_origin

from aotidoctor.model.artifact import Artifact, ModelEntry
from aotidoctor.model.case import CaseNote, Host, SeenBefore, TorchBuild
from aotidoctor.model.contract import Dim, LeafSpec, ModelContract, Unread
from aotidoctor.model.evidence import Evidence, FileSource, NotChecked, RunSource
from aotidoctor.model.fleet import (
    DIFFERENCE_SCHEMA,
    LEVELS,
    ComparedSide,
    DocumentDifference,
    HostAnswer,
    PackageNeeds,
    Samples,
)
from aotidoctor.model.inputs import InputSet, PlainValue, TensorDesc
from aotidoctor.model.localization import (
    CustodyStage,
    Frame,
    KernelValues,
    Localization,
    OutputComparison,
    TimelineEntry,
)
from aotidoctor.model.record import JsonObject, JsonValue
from aotidoctor.model.record_json import field_types
from aotidoctor.model.report import Diagnosis, LogEvent, LogReading, Remedy, Signature, SignaturePart
from aotidoctor.model.run import ChildError, Outcome, Request
from aotidoctor.model.serving_config import NameRow, NameTable

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


def of(kind: type, names: str) -> dict[str, JsonObject]:
    """Properties that are fields of a record, by their types there."""
    types = field_types(kind)
    return {name: _typed(types[name]) for name in names.split()}


_SCALARS = {str: TEXT, int: COUNT, bool: FLAG, float: SECONDS}
_SCALARS_OR_NULL = {str: TEXT_OR_NULL, int: COUNT_OR_NULL, bool: FLAG_OR_NULL}


def _typed(hint: object) -> JsonObject:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kind = next(one for one in options if one is not NoneType)
    if kind in _SCALARS:
        return _SCALARS[kind] if len(options) == 1 else _SCALARS_OR_NULL[kind]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return one_of(*(one.value for one in kind))
    if get_origin(kind) is tuple:
        return array_of(_typed(get_args(kind)[0]))
    return OPEN


# The file, the contract, the inputs and the host.
ARTIFACT = nullable(
    record_of(
        {**of(Artifact, "path size"), "kind": TEXT, "models": array_of(record_of(of(ModelEntry, "name layout")))},
        optional={
            **of(Artifact, "sha256 problem counts other_contents"),
            "n_members": COUNT,
            **each("stamp executorch precompiled", OPEN),
        },
    )
)

_INTEGER_OR_NULL: JsonObject = {"type": ["integer", "null"]}
_DIM = record_of({**of(Dim, "static"), **each("min max", _INTEGER_OR_NULL), "expr": TEXT_OR_NULL})
_LEAF = record_of(
    {
        **of(LeafSpec, "index path input_index dtype rank device_type"),
        "kind": one_of("tensor", "constant", "unknown"),
        "dims": nullable(array_of(_DIM)),
        "strides": nullable(array_of(_INTEGER_OR_NULL)),
    },
    optional=of(LeafSpec, "generated_name triton_names used"),
)
CONTRACT = nullable(
    record_of(
        {
            **of(ModelContract, "model_name source n_inputs n_outputs n_constants outputs symbols constants kernels"),
            **of(ModelContract, "custom_ops needs weights unknown_lines"),
            "leaves": array_of(_LEAF),
        },
        optional={"unread": array_of(record_of(of(Unread, "part fact count line example")))},
    )
)

_TENSOR = record_of(
    {
        **of(TensorDesc, "dtype shape device"),
        "path": TEXT,
        "kind": {"const": "tensor"},
        "stride": nullable(array_of({"type": "integer"})),
    }
)
_PLAIN = record_of({"path": TEXT, "kind": {"const": "plain"}, **of(PlainValue, "type text")})
INPUTS = nullable(
    record_of(
        {"path": TEXT_OR_NULL, "leaves": array_of({"anyOf": [_TENSOR, _PLAIN]}), "problem": TEXT_OR_NULL},
        optional={**of(InputSet, "format form sha256 notes"), "cause": TEXT_OR_NULL},
    )
)

HOST = record_of(
    {**of(Host, "system machine python"), "torch": nullable(record_of(of(TorchBuild, "version")))},
    optional=of(Host, "cores threads gpus environment tools"),
)

_NAME_ROW = record_of(of(NameRow, "slot ordinal forward path kind"), optional=of(NameRow, "dtype data_type lost"))
NAMES = record_of(
    {**of(NameTable, "release"), "servable": FLAG, **each("inputs outputs", array_of(_NAME_ROW))},
    optional=of(NameTable, "obstacles"),
)

COMPAT = record_of(
    {
        "needs": array_of(record_of(of(PackageNeeds, "package"), optional=of(PackageNeeds, "torch_least built_least"))),
        "answers": array_of(
            record_of(
                {**of(HostAnswer, "package host"), "answer": one_of("runs", "refused", "unknown")},
                optional=of(HostAnswer, "because causes unknown provided"),
            )
        ),
    }
)


# The report.
_SOURCE = nullable(
    {
        "anyOf": [
            record_of(of(FileSource, "file line"), optional={"column": COUNT}),
            record_of({**of(RunSource, "stream line"), "run": {"type": "string", "pattern": ID}}),
        ]
    }
)
_DIAGNOSIS = record_of(
    {
        **of(Diagnosis, "status title looked_like subject evidence playbook"),
        "cause": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        "rank": {"type": "integer", "minimum": 1},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "remedy": record_of(of(Remedy, "text command verified tried")),
    },
    optional=of(Diagnosis, "severity confirmation would_confirm"),
)
_FINDING = record_of(
    {
        **of(Evidence, "id severity subject observed expected"),
        "code": {"type": "string", "pattern": "^[A-Z]+(-[A-Z0-9]+)+$"},
        "source": _SOURCE,
    },
    optional=of(Evidence, "kind message facts"),
)
_RUN = record_of(
    {
        **of(Outcome, "id argv took_effect_why seconds stdout_tail stderr_tail"),
        **of(Request, "probe"),
        "env": {"type": "object", "additionalProperties": TEXT_OR_NULL},
        "took_effect": {"enum": [True, False, "unknown"]},
        "ending": one_of("exited", "signalled", "timed-out", "out-of-memory", "not-started"),
        "signal": TEXT_OR_NULL,
        "exit_code": _INTEGER_OR_NULL,
    },
    optional={
        **of(Outcome, "stage warnings stdout_bytes stderr_bytes"),
        **of(Request, "purpose"),
        "ending_why": TEXT,
        "stages_s": {"type": "object", "additionalProperties": SECONDS},
        "error": nullable(record_of(of(ChildError, "type message traceback"))),
        "outputs": array_of(OPEN),
        "applied": {"type": "array"},
        "peak_rss_bytes": COUNT_OR_NULL,
        "fresh_process": FLAG,
    },
)

_MEASURE: JsonObject = {"anyOf": [{"type": ["number", "null"]}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_COMPARISON = record_of(
    {
        **of(OutputComparison, "path verdict dtype reference_dtype shape reference_shape"),
        **each("max_abs max_rel error reference_error", _MEASURE),
        "needed": array_of({"type": "array", "items": _MEASURE, "minItems": 2, "maxItems": 2}),
    },
    optional={
        **of(OutputComparison, "nan reference_nan inf reference_inf nan_differs judged numel far asked reason"),
        **each("noise allowed rtol atol", _MEASURE),
    },
)
_CUSTODY_STAGE = record_of(of(CustodyStage, "name verdict observed against operator where run first"))
_FRAME = record_of(of(Frame, "index function"))
_LOCALIZATION = nullable(
    record_of(
        of(Localization, "culprit how") | {"chain": TEXT_OR_NULL},
        optional={
            **of(Localization, "calls_total fault_address fault_target notes first_bad bisected"),
            "check": nullable(_FRAME),
            "timeline": array_of(record_of(of(TimelineEntry, "name kind call state"))),
            "frames": array_of(_FRAME),
            "values": array_of(record_of(of(KernelValues, "index name kind buffers"))),
            "comparison": array_of(_COMPARISON),
            "stages": array_of(_CUSTODY_STAGE),
        },
    )
)


_STAGES = ("artifact", "host", "load", "inputs", "run", "output", "export", "compile", "link", "package", "serve")
_PART = record_of({**of(SignaturePart, "rule text"), "granularity": one_of("family", "exact")})
_FINGERPRINT = record_of({**of(Signature, "version family exact"), "parts": array_of(_PART)})
_LOG_EVENT = record_of(
    of(LogEvent, "form first last text"), optional=of(LogEvent, "origin stage count echo_of tainted")
)
_LOG = record_of(
    {**of(LogReading, "name size lines"), "events": array_of(_LOG_EVENT)},
    optional=of(LogReading, "matches more_events versions problems"),
)
_HISTORY = record_of(
    {**of(SeenBefore, "count since last"), "of": one_of("exact", "family")},
    optional={
        **of(SeenBefore, "host_class notes number"),
        "solved": nullable(record_of(of(CaseNote, "text at solved"))),
    },
)
_SAMPLES = record_of(
    of(Samples, "given called bad examined rows clusters outputs"),
    optional=of(Samples, "processes first_bad worst notes"),
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
            "not_checked": array_of(record_of(of(NotChecked, "code name reason"), optional=of(NotChecked, "moot"))),
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
            "samples": _SAMPLES,
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
        **of(ComparedSide, "name parts verdict causes version made"),
        "label": one_of("A", "B"),
        "kind": one_of("report", "bundle", "package", "host"),
    }
)
_DIFFERENCE = record_of(
    {
        **of(DocumentDifference, "subject a b why playbook codes evidence"),
        "rank": {"type": "integer", "minimum": 1},
        "area": one_of("host", "package", "inputs", "outcome", "fit"),
        "level": one_of(*LEVELS),
        "diagnosed": one_of("", "A", "B"),
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
