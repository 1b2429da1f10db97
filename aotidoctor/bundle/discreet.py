"""The values of tensors that a report may show on its own machine and that are not sent: bounds that are the values."""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.inputs import InputSet, LeafValue, TensorDesc
from aotidoctor.model.localization import BufferValues, Localization
from aotidoctor.model.report import Report
from aotidoctor.model.tree import Container, Leaf, Tree

# Bounds of so few elements are the elements.
_FEW = 64


def discreet(report: Report) -> Report:
    """``report`` without bounds of floating-point inputs and of small buffers. Bounds of integers decide diagnoses."""
    case, place = report.case, report.localization
    if case.inputs is not None:
        case = replace(case, inputs=_inputs(case.inputs))
    return replace(report, case=case, localization=_place(place) if place is not None else None)


def _inputs(found: InputSet) -> InputSet:
    return replace(found, args=_container(found.args), kwargs=_container(found.kwargs))


def _container(tree: Container[LeafValue]) -> Container[LeafValue]:
    return replace(tree, children=tuple(_tree(child) for child in tree.children))


def _tree(tree: Tree[LeafValue]) -> Tree[LeafValue]:
    if isinstance(tree, Leaf):
        return Leaf(value=_value(tree.value))
    return _container(tree)


def _value(value: LeafValue) -> LeafValue:
    if not isinstance(value, TensorDesc):
        return value
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
    count = 1
    for size in buffer.shape:
        count *= size
    return replace(buffer, low=None, high=None, mean=None) if count < _FEW else buffer
