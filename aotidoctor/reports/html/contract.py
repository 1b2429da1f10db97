"""The contract beside the inputs, one cell per property, with the mark in the cell that differs.

Marks come from findings: their code tells which property they speak of. Nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.inputs import LeafValue, TensorDesc, ValueStats
from aotidoctor.model.phrases import plural
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports import contract_view
from aotidoctor.reports.html import text
from aotidoctor.reports.html.blocks import Block, Cell, Folded, Line, Note, Pairs, Table, cell, cut

# All other findings speak of the leaf as a whole.
_ABOUT: Mapping[str, str] = {
    "AD-IN-004": "value",
    "AD-IN-007": "value",
    "AD-IN-008": "device",
    "AD-IN-010": "dtype",
    "AD-IN-011": "value",
    "AD-IN-012": "shape",
    "AD-IN-013": "shape",
    "AD-IN-014": "strides",
    "AD-IN-015": "shape",
    "AD-IN-016": "shape",
    "AD-IN-017": "shape",
    "AD-IN-018": "value",
    "AD-IN-019": "value",
}
_DIM = re.compile(r"\.shape\[(\d{1,3})\]$")
_EXPECTED = ("dtype", "shape", "strides", "device")
_GIVEN = (*_EXPECTED, "values")
_SHOWN = 40
_ROOM = 1000
_Leaf = tuple[str, LeafSpec | None, LeafValue | None]


@record
class _Marks:
    """What is wrong with a leaf: its properties, the dims of its shape, and the findings that say so.

    ``place`` among the properties: the container around the leaf is another than expected.
    """

    about: frozenset[str]
    dims: frozenset[int]
    ids: tuple[str, ...]
    tone: str


def contract_blocks(report: Report) -> tuple[Block, ...]:
    """The table; of a long one the marked leaves and the first others, with the rest folded. Then the symbols."""
    lines = [_line(report, leaf) for leaf in contract_view.leaves(report)]
    room = max(_SHOWN - sum(1 for line in lines if line.tone), 5)
    first: list[Line] = []
    rest: list[Line] = []
    for line in lines:
        room -= not line.tone
        (first if (line.tone or room >= 0) and len(first) < _ROOM else rest).append(line)
    blocks: list[Block] = [_table(report, first)] if first else []
    if rest:
        shown, more = cut("leaves", rest, _ROOM)
        summary = text.line(plural(len(rest), "more leaf", "more leaves"))
        blocks.append(Folded(summary=summary, blocks=(_table(report, shown), *more)))
    return (*blocks, *_symbols(report), *_problem(report))


def is_marked(blocks: Sequence[Block]) -> bool:
    """Whether a leaf of ``contract_blocks`` differs from what is expected; the first of them are never folded."""
    return any(line.tone for block in blocks if isinstance(block, Table) for line in block.rows)


def _table(report: Report, lines: Sequence[Line]) -> Table:
    given = report.case.inputs is not None
    return Table(
        label="Contract" + (" against inputs" if given else ""),
        headings=("Leaf", *_EXPECTED, *(_GIVEN if given else ())),
        groups=(("", 1), ("Compiled for", len(_EXPECTED)), ("Given", len(_GIVEN))) if given else (),
        rows=tuple(lines),
        look="contract sides" if given else "contract",
    )


def _line(report: Report, leaf: _Leaf) -> Line:
    path, spec, value = leaf
    marks = _marks(report, path)
    shown = text.marked(path, 120) if "place" in marks.about else text.line(path, 120)
    name = Markup("<code>{}</code> {}").format(shown, text.links(marks.ids))
    cells = (cell(name, heads=True), *_expected(report, spec, marks))
    if report.case.inputs is not None:
        cells += _given(report, path, value, marks)
    return Line(cells=cells, tone=marks.tone)


def _marks(report: Report, path: str) -> _Marks:
    told = [item for item in report.findings if _tells(report, item)]
    found = [item for item in told if contract_view.names_leaf(item.subject, path)]
    around = [item for item in told if item.subject and path.startswith((f"{item.subject}[", f"{item.subject}."))]
    dims = (_DIM.search(item.subject or "") for item in found if _ABOUT.get(item.code) == "shape")
    ours = (*found, *around)
    bad = any(item.severity is not Severity.WARN for item in ours)
    return _Marks(
        about=_about(found) | (frozenset({"place"}) if around else frozenset()),
        dims=frozenset(int(dim[1]) for dim in dims if dim is not None),
        ids=tuple(item.id for item in ours),
        tone="" if not ours else "bad" if bad else "unsure",
    )


def _tells(report: Report, item: Evidence) -> bool:
    """A complaint about the inputs, or what a run showed of their values and the first diagnosis rests on."""
    if item.code.startswith("AD-IN-"):
        return item.severity is not Severity.INFO
    return bool(report.diagnoses) and report.verdict == "problem" and item.id in report.diagnoses[0].evidence


def _about(found: Sequence[Evidence]) -> frozenset[str]:
    """The properties that the checks speak of; where none does, a run has shown that it is the values."""
    told = frozenset(_ABOUT.get(item.code, "leaf") for item in found if item.code.startswith("AD-IN-"))
    return told or frozenset("value" for _ in found[:1])


def _expected(report: Report, spec: LeafSpec | None, marks: _Marks) -> tuple[Cell, ...]:
    if spec is None or spec.kind != "tensor":
        words = contract_view.unexpected_text(report) if spec is None else contract_view.leaf_text(spec)
        return (_property(words, "leaf", marks, span=len(_EXPECTED)),)
    steps = contract_view.stride_texts(spec)
    return (
        _property(spec.dtype or "?", "dtype", marks),
        _shape(contract_view.size_texts(spec), marks),
        _property(f"({', '.join(steps)})" if steps else "", "strides", marks),
        _property(spec.device_type or "", "device", marks),
    )


def _given(report: Report, path: str, value: LeafValue | None, marks: _Marks) -> tuple[Cell, ...]:
    if value is None:
        return (_property(contract_view.missing_text(report, path), "leaf", marks, span=len(_GIVEN)),)
    if not isinstance(value, TensorDesc):
        words = contract_view.value_text(value)
        return (_property(words, "value" if "value" in marks.about else "leaf", marks, span=len(_GIVEN)),)
    steps = ", ".join(map(str, value.stride or ()))
    return (
        _property(value.dtype, "dtype", marks),
        _shape([str(size) for size in value.shape], marks),
        _property(f"({steps})" if steps else "", "strides", marks),
        _property(value.device, "device", marks),
        _property(_holds(value), "value", marks),
    )


def _property(words: str, about: str, marks: _Marks, *, span: int = 1) -> Cell:
    wrong = about in marks.about
    body = text.marked(words or "none") if wrong else text.line(words)
    return cell(body, tone=marks.tone if wrong else "", look="mono", span=span)


def _shape(sizes: Sequence[str], marks: _Marks) -> Cell:
    """The sizes, with the mark on the dim that differs; on all of them where the rank does."""
    if "shape" not in marks.about or not any(dim < len(sizes) for dim in marks.dims):
        return _property(f"[{', '.join(sizes)}]", "shape", marks)
    parts = [text.marked(size) if at in marks.dims else text.line(size) for at, size in enumerate(sizes)]
    return cell(Markup("[{}]").format(Markup(", ").join(parts)), tone=marks.tone, look="mono")


def _holds(value: TensorDesc) -> str:
    """What is unusual about a tensor, and the values that were looked at."""
    return ", ".join((*contract_view.unusual(value), *_values(value.stats)))


def _values(stats: ValueStats | None) -> tuple[str, ...]:
    if stats is None:
        return ()
    ends = [_number(end) for end in (stats.low, stats.high) if end is not None]
    span = " … ".join(dict.fromkeys(ends))
    counted = ((stats.nan, "NaN"), (stats.inf, "Inf"))
    return tuple(word for word in (span, *(f"{count} {name}" for count, name in counted if count)) if word)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _symbols(report: Report) -> tuple[Block, ...]:
    contract = report.case.contract
    if contract is None or not contract.symbols:
        return ()
    rows = tuple(
        (item.name, text.line(" · ".join((item.definition, *item.appears_in)))) for item in contract.symbols[:100]
    )
    title = text.line(f"{plural(len(contract.symbols), 'symbolic size')}, shared between dims")
    return (Folded(summary=title, blocks=(Pairs(rows=rows),)),)


def _problem(report: Report) -> tuple[Block, ...]:
    problem = report.case.inputs_error
    return () if problem is None else (Note(body=text.line(f"Inputs: {problem}"), tone="bad"),)
