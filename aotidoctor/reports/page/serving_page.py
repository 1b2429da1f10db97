"""Describe the models of a Triton repository, and write their section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aotidoctor.model.evidence import Evidence, FileSource, Severity, plural
from aotidoctor.model.report import Report
from aotidoctor.reports.package_view import dim_text
from aotidoctor.reports.page.blocks import TONES, Block, Cell, NoteBlock, TableBlock, TableLine, text_lines
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.model.serving_config import NameRow

RULE_HEADINGS = ("Rule", "Line", "What happens", "Remedy")
# What a message does not say by itself.
_LETTERS: Mapping[object, str] = {"S": "silently wrong: ", "I": "note: "}


def is_serving(report: Report) -> bool:
    """Whether the report is one about models of a server."""
    return report.command == "triton" and bool(report.extra.get("release"))


def served_names(report: Report) -> tuple[str, ...]:
    """The models that were judged."""
    return tuple(name for name in report.extra.get("models", "").split(", ") if name)


def release_text(report: Report) -> str:
    """``Triton 26.05 (server 2.69)``."""
    server = report.extra.get("server", "unknown")
    return f"Triton {report.extra['release']}" + (f" (server {server})" if server != "unknown" else "")


def serving_summary(report: Report) -> str:
    """The headline of a repository in which nothing is wrong."""
    models = served_names(report)
    who = models[0] if len(models) == 1 else plural(len(models), "model")
    return f"{who}: nothing that {release_text(report)} would fail on"


# Tensors of a package under Triton's names.
NAME_HEADINGS = ("Path", "Number", "Name", "dtype", "Type", "Dims")
_KINDS: Mapping[str, str] = {
    "unknown": "unknown whether it is a tensor",
    "value": "not a tensor: baked in at export",
    "empty": "not a tensor: an empty dict",
    "nested": "not a tensor: a container inside a keyword",
    "number": "a number: cannot be sent",
    "none": "None: leave it out",
    "shifted": "after an empty dict: answers with a different output",
}


def name_tables(report: Report) -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]:
    """Title and rows of the inputs, and of the outputs; empty if names were not requested."""
    table = report.names
    if table is None:
        return ()
    sides = (("Inputs", table.inputs), ("Outputs", table.outputs))
    return tuple((f"{title} for Triton {table.release}", tuple(map(_name_row, rows))) for title, rows in sides if rows)


def _name_row(row: NameRow) -> tuple[str, ...]:
    name = "lost: a different output has its name" if row.lost else row.forward or "any, in this order"
    dims = f"[{', '.join(map(dim_text, row.dims))}]" if row.dims is not None else "…"
    return (row.path, row.ordinal, name, row.dtype or "", row.data_type or "", _KINDS.get(row.kind, dims))


def names_summary(report: Report) -> str:
    """``nested: 3 inputs, 1 output on Triton 26.05 (server 2.69)``."""
    table = report.names
    if table is None:
        return ""
    counts = f"{plural(len(table.inputs), 'input')}, {plural(len(table.outputs), 'output')}"
    return f"{report.extra.get('models', '')}: {counts} on {release_text(report)}"


# The section.
def serving_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """Names, then per model what its server would make of it, the worst first; notes with ``detail``."""
    if not is_serving(report):
        return ()
    blocks: list[Block] = [
        TableBlock(label=title, headings=NAME_HEADINGS, rows=text_lines(rows), titled=True, whole=NAME_HEADINGS[1:3])
        for title, rows in name_tables(report)
    ]
    listed = [item for item in report.findings if detail > 0 or item.severity is not Severity.INFO]
    rule, line, what, remedy = RULE_HEADINGS
    for name in served_names(report):
        lines = tuple(_rule_line(item) for item in listed if item.facts.get("model") == name)
        if report.names is not None and not lines:
            continue
        blocks.append(
            TableBlock(
                label=f"{name} on {release_text(report)}",
                headings=RULE_HEADINGS,
                rows=lines or text_lines([("", "", "nothing wrong found", "")]),
                headed=bool(lines),
                titled=True,
                whole=(rule, line),
                ratios={what: 3, remedy: 2},
                room=2,
            )
        )
    hidden = sum(item.facts.get("model") in served_names(report) for item in report.findings if item not in listed)
    left = f"and {plural(hidden, 'note')} without a problem (-v shows all)"
    return (*blocks, *((NoteBlock(words=left, tone="dim"),) if hidden else ()))


def _rule_line(item: Evidence) -> TableLine:
    source = item.source
    line = ""
    if isinstance(source, FileSource):
        name = source.file.rpartition("/")[2]
        # The config is what the table is about; another file has to be named.
        line = name if source.line is None else str(source.line) if name == "config.pbtxt" else f"{name}:{source.line}"
    subject = (item.subject or "").partition(": ")[2]
    consequence = _LETTERS.get(item.facts.get("consequence"), "")
    observation = f"{item.observed}; " if item.observed and item.observed not in item.message else ""
    what = one_line(f"{consequence}{f'{subject}: ' if subject else ''}{observation}{item.message}", 500)
    remedy = one_line(str(item.facts.get("remedy") or ""), 300)
    rule = Cell(item.code.rpartition("-")[2], TONES[item.severity.value])
    return TableLine((rule, Cell(line), Cell(what), Cell(remedy)))
