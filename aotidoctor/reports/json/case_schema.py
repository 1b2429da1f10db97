"""What a report says of the file, the contract, the inputs and the host, as schemas; ``case`` writes it."""

from __future__ import annotations

from aotidoctor.model.json_types import JsonObject
from aotidoctor.reports.json.schema_words import (
    COUNT,
    COUNT_OR_NULL,
    FLAG,
    FLAG_OR_NULL,
    OPEN,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    array_of,
    each,
    nullable,
    one_of,
    record_of,
)

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
        },
    )
)

_DIM = record_of(
    {
        "static": COUNT_OR_NULL,
        **each("min max", {"type": ["integer", "null"]}),
        "expr": TEXT_OR_NULL,
    }
)

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
