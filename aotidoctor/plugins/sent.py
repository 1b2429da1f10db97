"""Records as another process can have them: without the functions that look at values."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from aotidoctor.model.case import Case
from aotidoctor.model.inputs import InputSet, LeafValue, TensorDesc
from aotidoctor.model.report import Report
from aotidoctor.model.tree import Container, Leaf, Tree

T = TypeVar("T")


def sendable(record: T) -> T:
    """A case or report without ``elements``; anything else as it is."""
    if isinstance(record, Report):
        plain = Report(**{item.name: getattr(record, item.name) for item in fields(Report)})
        return replace(plain, case=sendable(plain.case))  # type: ignore[return-value]  # a report, as the users' own
    if isinstance(record, Case) and record.inputs is not None:
        return replace(record, inputs=without_elements(record.inputs))
    assert is_dataclass(record)  # noqa: S101 - an outcome, or a case without inputs
    return record


def without_elements(inputs: InputSet) -> InputSet:
    """The description without access to values."""
    return replace(inputs, args=_bare(inputs.args), kwargs=_bare(inputs.kwargs))


def _bare(tree: Container[LeafValue]) -> Container[LeafValue]:
    return replace(tree, children=tuple(_child(child) for child in tree.children))


def _child(tree: Tree[LeafValue]) -> Tree[LeafValue]:
    if isinstance(tree, Container):
        return _bare(tree)
    value = tree.value
    return Leaf(value=replace(value, elements=None)) if isinstance(value, TensorDesc) else tree
