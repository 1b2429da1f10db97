"""Write the sections of an HTML page about package, contract, host and server, and how to repeat the report.

The contract stands beside the inputs, one cell per property, with the mark in the cell that differs. Marks come from
findings, whose code tells the property they are about; nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from markupsafe import Markup

from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.evidence import Evidence, Severity, plural
from aotidoctor.model.inputs import LeafValue, TensorDesc, ValueStats
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.model.torch_names import DEBUG_SETTINGS
from aotidoctor.reports import localization_view, package_view, report_view, run_view
from aotidoctor.reports.executorch_view import executorch_rows
from aotidoctor.reports.html import html_blocks
from aotidoctor.reports.html.html_blocks import (
    Block,
    Cell,
    CommandBlock,
    Folded,
    NoteBlock,
    Pairs,
    StepsBlock,
    TableBlock,
    TableLine,
    cell,
    cut,
    mono,
    printed_block,
    texts,
)
from aotidoctor.reports.html.run_sections import error_figure
from aotidoctor.reports.localization_view import (
    COMPARISON_HEADINGS,
    STAGE_HEADINGS,
    STAGES_TITLE,
    comparison_reasons,
    comparison_rows,
    stage_rows,
)

# The contract beside the inputs. All other findings speak of the leaf as a whole.
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
_MOST_LISTED = 40
_CONTRACT_ROOM = 1000
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
    lines = [_line(report, leaf) for leaf in package_view.leaves(report)]
    room = max(_MOST_LISTED - sum(1 for line in lines if line.tone), 5)
    first: list[TableLine] = []
    rest: list[TableLine] = []
    for line in lines:
        room -= not line.tone
        (first if (line.tone or room >= 0) and len(first) < _CONTRACT_ROOM else rest).append(line)
    blocks: list[Block] = [_table(report, first)] if first else []
    if rest:
        found, more = cut("leaves", rest, _CONTRACT_ROOM)
        summary = html_blocks.line(plural(len(rest), "more leaf", "more leaves"))
        blocks.append(Folded(summary=summary, blocks=(_table(report, found), *more)))
    inputs, problem = report.case.inputs, report.case.inputs_error
    notes = inputs.notes if inputs is not None and blocks else ()
    return (
        *blocks,
        *(NoteBlock(body=html_blocks.line(f"Inputs: {text}"), tone="dim") for text in notes),
        *_symbols(report),
        *(() if problem is None else (NoteBlock(body=html_blocks.line(f"Inputs: {problem}"), tone="bad"),)),
    )


def is_marked(blocks: Sequence[Block]) -> bool:
    """Whether a leaf of ``contract_blocks`` differs from what is expected; the first of them are never folded."""
    return any(line.tone for block in blocks if isinstance(block, TableBlock) for line in block.rows)


def _table(report: Report, lines: Sequence[TableLine]) -> TableBlock:
    given = report.case.inputs is not None
    return TableBlock(
        label="Contract" + (" against inputs" if given else ""),
        headings=("Leaf", *_EXPECTED, *(_GIVEN if given else ())),
        groups=(("", 1), ("Compiled for", len(_EXPECTED)), ("Given", len(_GIVEN))) if given else (),
        rows=tuple(lines),
        look="contract sides" if given else "contract",
    )


def _line(report: Report, leaf: _Leaf) -> TableLine:
    path, spec, value = leaf
    complaints = [item for item in report.findings if _is_complaint(report, item)]
    found = [item for item in complaints if package_view.names_leaf(item.subject, path)]
    around = [item for item in complaints if item.subject and path.startswith((f"{item.subject}[", f"{item.subject}."))]
    dims = (_DIM.search(item.subject or "") for item in found if _ABOUT.get(item.code) == "shape")
    ours = (*found, *around)
    bad = any(item.severity is not Severity.WARN for item in ours)
    # The properties that the checks speak of; where none does, a run has shown that it is the values.
    properties = frozenset(_ABOUT.get(item.code, "leaf") for item in found if item.code.startswith("AD-IN-"))
    marks = _Marks(
        about=(properties or frozenset("value" for _ in found[:1])) | (frozenset({"place"}) if around else frozenset()),
        dims=frozenset(int(dim[1]) for dim in dims if dim is not None),
        ids=tuple(item.id for item in ours),
        tone="" if not ours else "bad" if bad else "unsure",
    )
    text = html_blocks.mark_wrong(path, 120) if "place" in marks.about else html_blocks.line(path, 120)
    name = Markup("<code>{}</code> {}").format(text, html_blocks.links(marks.ids))
    cells = (cell(name, heads=True), *_expected_cells(report, spec, marks))
    if report.case.inputs is not None:
        cells += _given_cells(report, path, value, marks)
    return TableLine(cells=cells, tone=marks.tone)


def _is_complaint(report: Report, item: Evidence) -> bool:
    """A complaint about the inputs, or what a run showed of their values and the first diagnosis rests on."""
    if item.code.startswith("AD-IN-"):
        return item.severity is not Severity.INFO
    return bool(report.diagnoses) and report.verdict == "problem" and item.id in report.diagnoses[0].evidence


def _expected_cells(report: Report, spec: LeafSpec | None, marks: _Marks) -> tuple[Cell, ...]:
    if spec is None or spec.kind != "tensor":
        words = package_view.unexpected_text(report) if spec is None else package_view.leaf_text(spec)
        return (_property(words, "leaf", marks, span=len(_EXPECTED)),)
    steps = package_view.stride_texts(spec)
    return (
        _property(spec.dtype or "?", "dtype", marks),
        _shape(package_view.size_texts(spec), marks),
        _property(f"({', '.join(steps)})" if steps else "", "strides", marks),
        _property(spec.device_type or "", "device", marks),
    )


def _given_cells(report: Report, path: str, value: LeafValue | None, marks: _Marks) -> tuple[Cell, ...]:
    if value is None:
        return (_property(package_view.missing_text(report, path), "leaf", marks, span=len(_GIVEN)),)
    if not isinstance(value, TensorDesc):
        words = package_view.value_text(value)
        return (_property(words, "value" if "value" in marks.about else "leaf", marks, span=len(_GIVEN)),)
    steps = ", ".join(map(str, value.stride or ()))
    # What is unusual about a tensor, and the values that were looked at.
    return (
        _property(value.dtype, "dtype", marks),
        _shape([str(size) for size in value.shape], marks),
        _property(f"({steps})" if steps else "", "strides", marks),
        _property(value.device, "device", marks),
        _property(", ".join((*package_view.unusual(value), *_values(value.stats))), "value", marks),
    )


def _property(words: str, about: str, marks: _Marks, *, span: int = 1) -> Cell:
    wrong = about in marks.about
    body = html_blocks.mark_wrong(words or "none") if wrong else html_blocks.line(words)
    return cell(body, tone=marks.tone if wrong else "", look="mono", span=span)


def _shape(sizes: Sequence[str], marks: _Marks) -> Cell:
    """The sizes, with the mark on the dim that differs; on all of them where the rank does."""
    if "shape" not in marks.about or not any(dim < len(sizes) for dim in marks.dims):
        return _property(f"[{', '.join(sizes)}]", "shape", marks)
    parts = [
        html_blocks.mark_wrong(size) if at in marks.dims else html_blocks.line(size) for at, size in enumerate(sizes)
    ]
    return cell(Markup("[{}]").format(Markup(", ").join(parts)), tone=marks.tone, look="mono")


def _values(stats: ValueStats | None) -> tuple[str, ...]:
    if stats is None:
        return ()
    ends = [str(end) if isinstance(end, int) else f"{end:.4g}" for end in (stats.low, stats.high) if end is not None]
    span = " … ".join(dict.fromkeys(ends))
    counted = ((stats.nan, "NaN"), (stats.inf, "Inf"))
    return tuple(word for word in (span, *(f"{count} {name}" for count, name in counted if count)) if word)


def _symbols(report: Report) -> tuple[Block, ...]:
    contract = report.case.contract
    if contract is None or not contract.symbols:
        return ()
    rows = tuple(
        (item.name, html_blocks.line(" · ".join((item.definition, *item.appears_in))))
        for item in contract.symbols[:100]
    )
    title = html_blocks.line(f"{plural(len(contract.symbols), 'symbolic size')}, shared between dims")
    return (Folded(summary=title, blocks=(Pairs(rows=rows),)),)


# Package, host, server, comparison, and the command.
_ROOM = 400
_TRACEBACK = 40_000
_TONES = {"": "", "!": "unsure", "x": "bad", "info": "", "warn": "unsure", "error": "bad"}


def plan_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """Build the list of runs that are planned."""
    return (
        (StepsBlock(items=tuple(html_blocks.link_mentions(step, known) for step in report.plan)),)
        if report.plan
        else ()
    )


def stage_blocks(report: Report) -> tuple[Block, ...]:
    """The stages from the model to its package."""
    rows = stage_rows(report)
    if not rows:
        return ()
    lines = texts([row[1:] for row in rows], tones=[_TONES[row[0]] for row in rows])
    return (TableBlock(label=STAGES_TITLE, headings=STAGE_HEADINGS[1:], rows=lines, stacks=True),)


def comparison_blocks(report: Report) -> tuple[Block, ...]:
    """Output by output against the reference: drawn, and as numbers."""
    rows = comparison_rows(report)
    if not rows or report.localization is None:
        return ()
    lines, more = cut("outputs", texts([row[1:] for row in rows], tones=[_TONES[row[0]] for row in rows]), _ROOM)
    table = TableBlock(
        label="Outputs against the reference", headings=COMPARISON_HEADINGS[1:], rows=lines, look="numbers"
    )
    why = tuple(NoteBlock(body=html_blocks.line(text)) for text in comparison_reasons(report))
    return (*error_figure(report.localization.comparison), table, *more, *why)


def serving_blocks(report: Report) -> tuple[Block, ...]:
    """Names, then per model what its server would make of it."""
    if not run_view.is_serving(report):
        return ()
    blocks: list[Block] = [
        TableBlock(label=title, headings=run_view.NAME_HEADINGS, rows=texts(rows), stacks=True, titled=True)
        for title, rows in run_view.name_tables(report)
    ]
    for model in run_view.model_rows(report, notes=True)[:_ROOM]:
        if report.names is not None and not model.rows:
            continue
        label = f"{model.name} on {run_view.release_text(report)}"
        rows = [(row.rule, row.line, row.what, row.remedy) for row in model.rows]
        lines, more = cut("rows", texts(rows, tones=[_TONES[row.severity] for row in model.rows]), _ROOM)
        table = TableBlock(label=label, headings=run_view.RULE_HEADINGS, rows=lines, stacks=True, titled=True)
        nothing = NoteBlock(body=html_blocks.line(f"{label}: nothing wrong found"))
        blocks += [table, *more] if lines else [nothing]
    return tuple(blocks)


def compat_blocks(report: Report) -> tuple[Block, ...]:
    """Packages and hosts: the matrix, every answer with its reason, and what each package needs."""
    found = report.compat
    if found is None:
        return ()
    matrix = localization_view.compat_matrix(found)
    tones = [localization_view.COMPAT_TONES[item.answer] for item in found.answers]
    lines, more = cut("answers", texts(localization_view.answer_rows(found), tones=tones), _ROOM)
    blocks: list[Block] = [
        TableBlock(label="Answers", headings=localization_view.COMPAT_HEADINGS, rows=lines, stacks=True),
        *more,
    ]
    if matrix is not None:
        blocks.insert(
            0, TableBlock(label=localization_view.COMPAT_MATRIX, headings=matrix[0], rows=texts(matrix[1]), titled=True)
        )
    for title, rows in localization_view.needs_tables(found)[:_ROOM]:
        blocks += [
            NoteBlock(body=html_blocks.line(title)),
            Pairs(rows=tuple((label, html_blocks.line(text)) for label, text in rows)),
        ]
    return tuple(blocks)


def package_blocks(report: Report) -> tuple[Block, ...]:
    """Build the blocks that only ``inspect`` shows: an ExecuTorch file, outputs, constants, calls, needs."""
    contract, content = report.case.contract, report.case.artifact.executorch
    if report.command != "inspect":
        return ()
    rows = executorch_rows(content) if content is not None else ()
    program = _named_table("ExecuTorch", ("Part", "What it is"), rows)
    if contract is None:
        return program
    outputs = [(item.path, package_view.output_text(item)) for item in contract.outputs]
    constants = [(item.fqn, package_view.constant_text(item)) for item in contract.constants]
    calls = [(item.name, package_view.kernel_text(item)) for item in contract.kernels]
    tables = (
        _named_table("Outputs", ("Output", "What it is"), outputs),
        _named_table("Constants", ("Constant", "What it is"), constants),
        _named_table("Calls, in order", ("Call", "Made of"), calls),
        _named_table("Host requirements", ("Need", "What it is"), package_view.needs_rows(contract)),
    )
    return (*program, *(block for blocks in tables for block in blocks))


def _named_table(label: str, headings: tuple[str, str], rows: Sequence[tuple[str, str]]) -> tuple[Block, ...]:
    lines = [
        TableLine(cells=(cell(html_blocks.code(name), heads=True), cell(html_blocks.line(text)))) for name, text in rows
    ]
    listed, more = cut("rows", lines, _ROOM)
    return (TableBlock(label=label, headings=headings, rows=listed), *more) if listed else ()


def host_blocks(report: Report) -> tuple[Block, ...]:
    """Build the tables of the host and of the environment variables that may matter."""
    if report_view.is_unexamined(report):
        return ()
    host = report.case.host
    rows = tuple((label, html_blocks.line(text, 900)) for label, text in package_view.host_rows(host, whole=True))
    blocks: list[Block] = [Pairs(rows=rows)]
    if host.environment:
        parts = tuple((name, html_blocks.code(text)) for name, text in host.environment.items())
        title = html_blocks.line(plural(len(parts), "environment variable"))
        blocks.append(Folded(summary=title, blocks=(Pairs(rows=parts[:_ROOM]),)))
    return tuple(blocks)


def settings_blocks(report: Report) -> tuple[Block, ...]:
    """Which debug setting acts when."""
    if report.command != "env":
        return ()
    rows = tuple(TableLine(cells=(mono(item.name), cell(item.acts), cell(item.what))) for item in DEBUG_SETTINGS)
    return (TableBlock(label="Debug settings", headings=("Setting", "Acts", "What it does"), rows=rows, stacks=True),)


def traceback_blocks(report: Report) -> tuple[Block, ...]:
    """Build the block with the traceback of a failure of aotidoctor itself."""
    return () if report.internal_error is None else printed_block("Traceback", report.internal_error, _TRACEBACK)


def again_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """The command that made it, and the fingerprint of the failure with what went into it."""
    blocks: list[Block] = [CommandBlock(text=report_view.command_text(report.argv))]
    mark = report.fingerprint
    if mark is None:
        signature = (("Signature", html_blocks.code(report.signature or "")),) if report.signature else ()
        return (*blocks, *((Pairs(rows=signature),) if signature else ()))
    rows = (("Signature", html_blocks.code(mark.exact)), ("Of its family", html_blocks.code(mark.family)))
    parts = tuple(
        TableLine(
            cells=(
                cell(part.rule, heads=True),
                mono(part.text),
                cell(part.granularity, tone="dim"),
                cell(html_blocks.link_mentions(part.source, known)),
            )
        )
        for part in mark.parts[:_ROOM]
    )
    table = TableBlock(label="Parts of the signature", headings=("Rule", "Part", "In", "From"), rows=parts)
    folded = Folded(summary=html_blocks.line(f"{plural(len(parts), 'part')}, version {mark.version}"), blocks=(table,))
    return (*blocks, Pairs(rows=rows), *((folded,) if parts else ()))
