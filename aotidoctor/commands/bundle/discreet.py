"""The values of tensors that a report may show on its own machine and that are not sent: bounds that are the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.localization import BufferValues, Localization
from aotidoctor.model.report import Report

# Bounds of so few elements are the elements.
_FEW = 64


# What describes the values of a tensor so closely that few elements can be told from it, checksums included.
_TELLING = frozenset({"min", "max", "mean", "low", "high", "digest", "sha256"})


def discreet(report: Report) -> Report:
    """``report`` without bounds of floating-point inputs and of small tensors. Bounds of integers decide diagnoses."""
    case, place = report.case, report.localization
    if case.inputs is not None:
        case = replace(case, inputs=case.inputs.with_tensors(_value))
    runs = tuple(replace(run, result=_object(run.result)) for run in report.runs)
    # What a desk noted of earlier cases is its own.
    return replace(
        report, history=None, case=case, runs=runs, localization=_place(place) if place is not None else None
    )


def discreet_document(value: JsonObject) -> JsonObject:
    """The same of a report that was saved as JSON."""
    return _object({name: item for name, item in value.items() if name != "history"})


def _object(value: JsonObject) -> JsonObject:
    shape, stats = value.get("shape"), value.get("stats")
    few = isinstance(shape, list) and _count(shape) < _FEW
    found = {name: None if few and name in _TELLING else _json(item) for name, item in value.items()}
    if isinstance(stats, dict) and isinstance(shape, list) and not _is_integer(str(value.get("dtype"))):
        found["stats"] = {**stats, "low": None, "high": None}
    return found


def _json(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _object(value)
    return [_json(item) for item in value] if isinstance(value, list) else value


def _count(shape: Sequence[object]) -> int:
    count = 1
    for size in shape:
        count *= size if isinstance(size, int) else _FEW
    return count


def _value(value: TensorDesc) -> TensorDesc:
    stats = value.stats
    if stats is not None and not _is_integer(value.dtype):
        stats = replace(stats, low=None, high=None)
    return replace(value, stats=stats, elements=None)


def _is_integer(dtype: str) -> bool:
    return dtype in ITEMSIZE and dtype.startswith(("int", "uint", "bool"))


def _place(place: Localization) -> Localization:
    values = tuple(
        replace(kernel, buffers=tuple(_buffer(buffer) for buffer in kernel.buffers)) for kernel in place.values
    )
    return replace(place, values=values)


def _buffer(buffer: BufferValues) -> BufferValues:
    return replace(buffer, low=None, high=None, mean=None) if _count(buffer.shape) < _FEW else buffer
