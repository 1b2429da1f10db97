"""Inputs as JSON: see ``aotidoctor.model.inputs_json`` for the document."""

from __future__ import annotations

import json

from aotidoctor.model.dtypes import ITEMSIZE, contiguous_stride
from aotidoctor.model.errors import too_many
from aotidoctor.model.inputs import Elements, LeafValue, TensorDesc, ValueStats
from aotidoctor.model.inputs_json import DocumentError, TensorSpec, decode
from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.tree import Tree
from aotidoctor.readers.inputs.content import Content
from aotidoctor.readers.inputs.describe import plain_value
from aotidoctor.readers.inputs.problems import corrupt, wrong_format
from aotidoctor.readers.inputs.values import MAX_BYTES, summarise

MAX_FILE = 64 << 20
MOST_BRACKETS = 500_000
FLOATING = ("float", "bfloat")


def read_json(path: str, data: memoryview) -> Content:
    """The content of the document. Raises ``InputsError``."""
    if len(data) > MAX_FILE:
        raise wrong_format(
            path, f"JSON of {len(data)} bytes", expected=f"at most {MAX_FILE}; use .npz for large values"
        )
    text = bytes(data)
    # Each costs far more memory than its two characters in the file.
    if text.count(b"[") + text.count(b"{") > MOST_BRACKETS:
        raise too_many("lists and objects in the JSON inputs", MOST_BRACKETS)
    try:
        document: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise corrupt(path, path, f"no JSON ({str(error)[:80]})", "a JSON document") from error
    if not isinstance(document, (dict, list)):
        raise wrong_format(path, f"JSON that contains a single {type(document).__name__}")
    try:
        tree = describe_document(document)
    except (DocumentError, RecursionError) as error:
        observed = str(error)[:200]
        raise wrong_format(path, observed, subject=observed.partition(":")[0][:80]) from error
    return Content(tree=tree, format="json")


def describe_document(document: JsonValue) -> Tree[LeafValue]:
    """The descriptions of the tensors that the worker will make of ``document``. Raises ``DocumentError``."""
    made: list[TensorDesc] = []

    def tensor(spec: TensorSpec) -> LeafValue:
        made.append(_tensor(spec, f"json-{len(made)}"))
        return made[-1]

    return decode(document, tensor, plain_value)


def _tensor(spec: TensorSpec, name: str) -> TensorDesc:
    stride = contiguous_stride(spec.shape) if spec.stride is None else spec.stride
    elements = 1 + sum((size - 1) * step for size, step in zip(spec.shape, stride, strict=True))
    return TensorDesc(
        dtype=spec.dtype,
        shape=spec.shape,
        stride=stride,
        storage=name,
        storage_nbytes=0 if 0 in spec.shape else elements * ITEMSIZE[spec.dtype],
        device=spec.device,
        stats=_stats(spec),
        elements=_elements(spec),
    )


def _elements(spec: TensorSpec) -> Elements | None:
    """The integers of the document; other numbers are of no use to anyone who asks for elements."""
    data = spec.data
    if data is None or spec.dtype.startswith((*FLOATING, "complex")):
        return None
    return lambda: [int(value) for value in data]


def _stats(spec: TensorSpec) -> ValueStats | None:
    data = spec.data
    if data is None or len(data) * ITEMSIZE[spec.dtype] > MAX_BYTES or spec.dtype.startswith("complex"):
        return None
    try:
        if spec.dtype.startswith(FLOATING):
            return summarise([float(value) for value in data])
        if spec.dtype == "bool":
            return summarise([int(bool(value)) for value in data])
        return summarise([int(value) for value in data])
    except (ValueError, OverflowError) as error:
        raise DocumentError(f"data: observed {error}, expected values of {spec.dtype}") from error
