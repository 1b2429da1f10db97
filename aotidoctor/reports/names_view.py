"""The tensors of a package under Triton's names, as rows of words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aotidoctor.model.phrases import plural
from aotidoctor.model.report import Report
from aotidoctor.reports import serving_view
from aotidoctor.reports.contract_view import dim_text

if TYPE_CHECKING:
    from aotidoctor.model.serving_names import NameRow

HEADINGS = ("Path", "Number", "Name", "dtype", "Type", "Dims")
_KINDS: Mapping[str, str] = {
    "unknown": "unknown whether it is a tensor",
    "value": "not a tensor: baked in at export",
    "empty": "not a tensor: an empty dict",
    "nested": "not a tensor: a container inside a keyword",
    "number": "a number: cannot be sent",
    "none": "None: leave it out",
    "shifted": "after an empty dict: answers with a different output",
}


def tables(report: Report) -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]:
    """Title and rows of the inputs, and of the outputs; nothing where names were not asked for."""
    table = report.names
    if table is None:
        return ()
    sides = (("Inputs", table.inputs), ("Outputs", table.outputs))
    return tuple((f"{title} for Triton {table.release}", tuple(map(_row, rows))) for title, rows in sides if rows)


def _row(row: NameRow) -> tuple[str, ...]:
    name = "lost: a different output has its name" if row.lost else row.forward or "any, in this order"
    return (row.path, row.ordinal, name, row.dtype or "", row.data_type or "", _dims(row))


def _dims(row: NameRow) -> str:
    if row.kind in _KINDS:
        return _KINDS[row.kind]
    if row.dims is None:
        return "…"
    return f"[{', '.join(map(dim_text, row.dims))}]"


def summary(report: Report) -> str:
    """``nested: 3 inputs, 1 output on Triton 26.05 (server 2.69)``."""
    table = report.names
    if table is None:
        return ""
    counts = f"{plural(len(table.inputs), 'input')}, {plural(len(table.outputs), 'output')}"
    return f"{report.extra.get('models', '')}: {counts} on {serving_view.release_text(report)}"
