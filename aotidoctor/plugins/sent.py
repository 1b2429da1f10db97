"""Records as another process can have them: without the functions that look at values."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from aotidoctor.model.case import Case
from aotidoctor.model.report import Report

T = TypeVar("T")


def sendable(record: T) -> T:
    """A case or report without ``elements``; anything else as it is."""
    if isinstance(record, Report):
        plain = Report(**{item.name: getattr(record, item.name) for item in fields(Report)})
        return replace(plain, case=sendable(plain.case))  # type: ignore[return-value]  # a report, as the users' own
    if isinstance(record, Case) and record.inputs is not None:
        return replace(record, inputs=record.inputs.without_elements())
    assert is_dataclass(record)  # noqa: S101 - an outcome, or a case without inputs
    return record
