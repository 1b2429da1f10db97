"""Write the sections about package, contract, host and server.

In a terminal and in Markdown the contract stands beside the inputs leaf by leaf, in HTML property by property, with the
mark in the cell that differs. Marks come from findings, whose code tells the property that they are about; nothing is
judged here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Sequence

from aotidoctor.model.artifact import Artifact, ModelEntry, SharedObject, StampSeen
from aotidoctor.model.contract import LeafSpec, ModelContract
from aotidoctor.model.evidence import Evidence, Severity, plural
from aotidoctor.model.inputs import LeafValue, TensorDesc, ValueStats
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.model.torch_names import DEBUG_SETTINGS
from aotidoctor.reports import package_view
from aotidoctor.reports.executorch_view import code_rows, executorch_rows, precompiled_rows
from aotidoctor.reports.page import log_page, report_view
from aotidoctor.reports.page.blocks import (
    HTML,
    MARKDOWN,
    TERMINAL,
    TONES,
    Block,
    Cell,
    Folded,
    NoteBlock,
    Pairs,
    Span,
    TableBlock,
    TableLine,
    Words,
    facts_table,
    text_lines,
)
from aotidoctor.reports.text import one_line, size

# The contract, leaf by leaf.
_MARKS = {Severity.WARN: "!", Severity.ERROR: "x"}
_LEAVES_LISTED = 24


def contract_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """The leaves of the contract beside the inputs, its symbols, and why the inputs could not be read."""
    rows = leaf_lines(report)
    observed = report.case.inputs is not None
    listed = rows if detail > 0 or len(rows) <= _LEAVES_LISTED else _decisive_leaves(rows)
    left = len(rows) - len(listed)
    table = TableBlock(
        label="Contract",
        headings=("Leaf", "Expected", *(("Observed",) if observed else ())),
        rows=tuple(listed),
        marked=True,
        more=plural(left, "more leaf", "more leaves") if left else "",
        formats=TERMINAL + MARKDOWN,
    )
    inputs, problem = report.case.inputs, report.case.inputs_error
    notes = inputs.notes if inputs is not None and rows else ()
    texts = (*notes, *((str(problem),) if problem is not None else ()))
    return (
        *((table,) if rows else ()),
        *(_property_tables(report) if detail > 1 else ()),
        *((Pairs(rows=tuple(("Inputs" if not at else "", text) for at, text in enumerate(texts))),) if texts else ()),
    )


def leaf_lines(report: Report) -> list[TableLine]:
    """Every leaf of the contract beside what was passed for it, then what was passed and not expected.

    Strides are shown where they may matter: in a marked row, and where those passed are not the ordinary ones.
    """
    about = package_view.by_leaf(item for item in report.findings if item.code.startswith("AD-IN-"))
    objects = package_view.differing_places(report, "object")
    lines = []
    for path, spec, value in package_view.leaves(report):
        found = (item.severity for item in about.get(path, ()))
        worst = max(found, key=lambda severity: severity.rank, default=Severity.INFO)
        mark = _MARKS.get(worst, "")
        tone = TONES[worst.value] if mark else ""
        strides = bool(mark) or (isinstance(value, TensorDesc) and not package_view.is_ordinary(value))
        expected = (
            package_view.unexpected_text(report) if spec is None else package_view.leaf_text(spec, strides=strides)
        )
        cells = [Cell(one_line(path), tone), Cell(expected)]
        if value is not None:
            cells.append(Cell(package_view.value_text(value, strides=strides), tone))
        elif report.case.inputs is not None:
            cells.append(Cell(package_view.missing_text(objects, path), tone))
        lines.append(TableLine(tuple(cells), mark=mark))
    return lines


def _decisive_leaves(rows: Sequence[TableLine]) -> list[TableLine]:
    """Of a long table the marked leaves first, in order, then others up to the limit."""
    marked = [row for row in rows if row.mark][:_LEAVES_LISTED]
    others = [row for row in rows if not row.mark][: _LEAVES_LISTED - len(marked)]
    return [row for row in rows if row in marked or row in others]


# The contract, property by property. All other findings speak of the leaf as a whole.
_CODES = {
    "value": "004 007 011 018 019",
    "device": "008",
    "dtype": "010",
    "shape": "012 013 015 016 017",
    "strides": "014",
}
_ABOUT = {f"AD-IN-{code}": about for about, codes in _CODES.items() for code in codes.split()}
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


def _property_tables(report: Report) -> tuple[Block, ...]:
    """The table; of a long one the marked leaves and the first others, with the rest folded. Then the symbols."""
    complaints = [item for item in report.findings if _is_complaint(report, item)]
    named, at = package_view.by_leaf(complaints), defaultdict[str | None, list[Evidence]](list)
    for item in complaints:
        at[item.subject].append(item)
    objects = package_view.differing_places(report, "object")
    lines = []
    for leaf in package_view.leaves(report):
        around = [item for outer in package_view.outer_paths(leaf[0]) for item in at.get(outer, ())]
        lines.append(_line(report, leaf, named.get(leaf[0], ()), around, objects))
    room = max(_MOST_LISTED - sum(1 for line in lines if line.tone), 5)
    first: list[TableLine] = []
    rest: list[TableLine] = []
    for line in lines:
        room -= not line.tone
        (first if (line.tone or room >= 0) and len(first) < _CONTRACT_ROOM else rest).append(line)
    contract = report.case.contract
    symbols = contract.symbols if contract is not None else ()
    return (
        *((_property_table(report, first),) if first else ()),
        *(_folded(plural(len(rest), "more leaf", "more leaves"), _property_table(report, rest)) if rest else ()),
        *(
            _folded(
                f"{plural(len(symbols), 'symbolic size')}, shared between dims",
                Pairs(rows=tuple((one.name, " · ".join((one.definition, *one.appears_in))) for one in symbols[:100])),
            )
            if symbols
            else ()
        ),
    )


def _folded(summary: str, block: Block) -> tuple[Block, ...]:
    return (Folded(summary=summary, blocks=(block,), formats=HTML),)


def is_marked(blocks: Sequence[Block]) -> bool:
    """Whether a leaf of ``contract_blocks`` differs from what is expected; the first of them are never folded."""
    return any(line.tone for block in blocks if isinstance(block, TableBlock) for line in block.rows)


def _property_table(report: Report, lines: Sequence[TableLine]) -> TableBlock:
    given = report.case.inputs is not None
    return TableBlock(
        label="Contract" + (" against inputs" if given else ""),
        headings=("Leaf", *_EXPECTED, *(_GIVEN if given else ())),
        groups=(("", 1), ("Compiled for", len(_EXPECTED)), ("Given", len(_GIVEN))) if given else (),
        rows=tuple(lines),
        look="contract sides" if given else "contract",
        noun="more leaves",
        formats=HTML,
    )


def _line(
    report: Report, leaf: _Leaf, found: Sequence[Evidence], around: Sequence[Evidence], objects: Container[str | None]
) -> TableLine:
    """A leaf, with the complaints that name it and those about what it is in; ``objects`` are places of objects."""
    path, spec, value = leaf
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
    path_look = "wrong" if "place" in marks.about else "code"
    name = (Span(path, path_look), *((Span(f" {' '.join(marks.ids)}"),) if ours else ()))
    cells = (Cell(name), *_expected_cells(report, spec, marks))
    if report.case.inputs is not None:
        cells += _given_cells(objects, path, value, marks)
    return TableLine(cells, marks.tone)


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


def _given_cells(objects: Container[str | None], path: str, value: LeafValue | None, marks: _Marks) -> tuple[Cell, ...]:
    if value is None:
        return (_property(package_view.missing_text(objects, path), "leaf", marks, span=len(_GIVEN)),)
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


def _property(text: str, about: str, marks: _Marks, *, span: int = 1) -> Cell:
    wrong = about in marks.about
    words: Words = (Span(text or "none", "wrong"),) if wrong else text
    return Cell(words, marks.tone if wrong else "", "mono", span)


def _shape(sizes: Sequence[str], marks: _Marks) -> Cell:
    """The sizes, with the mark on the dim that differs; on all of them where the rank does."""
    if "shape" not in marks.about or not any(dim < len(sizes) for dim in marks.dims):
        return _property(f"[{', '.join(sizes)}]", "shape", marks)
    parts = [part for at, one in enumerate(sizes) for part in (", ", Span(one, "wrong" if at in marks.dims else ""))]
    words = tuple(Span(part) if isinstance(part, str) else part for part in ("[", *parts[1:], "]"))
    return Cell(words, marks.tone, "mono")


def _values(stats: ValueStats | None) -> tuple[str, ...]:
    if stats is None:
        return ()
    ends = [str(end) if isinstance(end, int) else f"{end:.4g}" for end in (stats.low, stats.high) if end is not None]
    span = " … ".join(dict.fromkeys(ends))
    counted = ((stats.nan, "NaN"), (stats.inf, "Inf"))
    return tuple(word for word in (span, *(f"{count} {name}" for count, name in counted if count)) if word)


# The package.
_LISTED = 20


def package_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """What only ``inspect`` shows: archive, models, contract, needs."""
    if report.command != "inspect":
        return ()
    artifact, contract, stamp = report.case.artifact, report.case.contract, report.case.stamp
    most = None if detail > 0 else _LISTED
    loaded = report.case.model.name if report.case.model is not None else None
    findings = tuple((item.severity.value, _finding_text(item)) for item in report.findings)
    # Markdown and HTML have a table of them.
    blocks: list[Block] = [Pairs(label="Findings", rows=findings, formats=TERMINAL)] if findings else []
    blocks += _archive(artifact)
    blocks += _stamp(stamp) if stamp is not None else ()
    for model in artifact.models if artifact.executorch is None else ():
        blocks += _model(model, chosen=len(artifact.models) > 1 and model.name == loaded)
    if artifact.executorch is not None:
        blocks += facts_table("ExecuTorch", executorch_rows(artifact.executorch), most=most)
    if artifact.precompiled is not None:
        blocks += facts_table("Compiled code", precompiled_rows(artifact.precompiled), most=most)
    if contract is None:
        if artifact.executorch is None and artifact.precompiled is None:
            blocks.append(NoteBlock(label="Contract", words="not readable from this file without running it"))
        return tuple(blocks)
    blocks += _inputs(contract)
    if artifact.precompiled is not None:
        return tuple(blocks)
    total = sum(constant.data_size or 0 for constant in contract.constants)
    constants = [(item.fqn, package_view.constant_text(item)) for item in contract.constants]
    calls = [(f"{at}. {item.name}", package_view.kernel_text(item)) for at, item in enumerate(contract.kernels, 1)]
    odd = [f"{plural(contract.unknown_lines, 'statement')} of the wrapper not understood"]
    odd = [*(odd if contract.unknown_lines else ()), *map(package_view.unread_text, contract.unread)]
    return (
        *blocks,
        *facts_table("Outputs", [(item.path, package_view.output_text(item)) for item in contract.outputs], named=True),
        *facts_table(f"Constants ({len(constants)}, {size(total)})", constants, most=most, named=True),
        *facts_table(f"Calls, in order ({len(calls)})", calls, most=most, named=True),
        *facts_table("Host requirements", package_view.needs_rows(contract)),
        *(NoteBlock(words=text, tone="unsure") for text in (*odd, *contract.problems)),
    )


def _finding_text(item: Evidence) -> str:
    words = (item.observed, item.expected and f"expected {item.expected}")
    return f"{item.code} {item.kind}: {item.message or ', '.join(word for word in words if word)}"


def _stamp(seen: StampSeen) -> tuple[Block, ...]:
    stamp = seen.stamp
    if stamp is None:
        return facts_table("Stamp", (("problem", str(seen.problem)),))
    ranges = (f"{name} in {bounds.low}..{bounds.high}" for name, bounds in stamp.facts.ranges.items())
    baked = (f"{path} = {value}" for path, value in stamp.facts.constant_inputs.items())
    rows = (
        ("built by torch", stamp.torch or ""),
        ("compiler", stamp.compiler or ""),
        ("program", stamp.program[:16]),
        ("weights", f"{len(stamp.weights)} hashed: {seen.equal} as stamped, {len(seen.differing)} different"),
        ("ranges", ", ".join(ranges)),
        ("fixed at export", ", ".join(baked)),
        ("left out", ", ".join((*stamp.left_out, *([seen.unread] if seen.unread else ())))),
    )
    return facts_table("Stamp", tuple(row for row in rows if row[1]))


def _archive(artifact: Artifact) -> tuple[Block, ...]:
    rows = (
        ("kind", artifact.kind.value),
        ("size", f"{artifact.size:,} bytes ({size(artifact.size)}) in {plural(len(artifact.members), 'member')}"),
        ("sha256", artifact.sha256 or ""),
        ("archive", " ".join(word for word in (artifact.archive_format, artifact.archive_version) if word)),
        ("CRC not read", plural(len(artifact.unread_crc), "large member") if artifact.unread_crc else ""),
        ("exported programs", ", ".join(facts.name for facts in artifact.exported)),
        ("other contents", ", ".join(artifact.other_contents)),
        ("not understood", ", ".join(f"{name} {count}" for name, count in artifact.counts.items())),
        ("problem", artifact.problem or ""),
    )
    return facts_table("Archive", tuple(row for row in rows if row[1]))


def _model(model: ModelEntry, *, chosen: bool) -> tuple[Block, ...]:
    rows = [
        ("layout", model.layout),
        ("weights", model.weights_location),
        ("sources", f"{plural(len(model.kernel_sources), 'file')}" + ("" if model.wrapper_cpp else ", no wrapper.cpp")),
    ]
    for item in model.shared_objects:
        words = (item.format, item.machine, f"{item.bits} bit" if item.bits else None, size(item.size), item.problem)
        rows.append(("library", ", ".join(word for word in words if word)))
        rows += code_rows(item)
        rows.append(("compiled in", _features(item)))
    for metadata in model.metadata:
        text = metadata.problem or ", ".join(f"{key}={value}" for key, value in metadata.values.items())
        rows.append(("metadata", text))
    if model.extern_nodes:
        rows.append(("custom or extern", ", ".join(sorted({node.target for node in model.extern_nodes}))))
    if model.gpu_code:
        rows.append(("GPU code", plural(len(model.gpu_code), "file") + f" for {', '.join(model.gpu_targets) or '?'}"))
    # Wrapper and kernel have a metadata file each, mostly with equal values.
    known = tuple(row for row in dict.fromkeys(rows) if row[1])
    return facts_table(f"Model {model.name}" + (" (this one is loaded)" if chosen else ""), known)


def _features(item: SharedObject) -> str:
    features = item.features
    parts = (
        ("input checks", features.input_checks),
        ("NaN asserts", features.nan_asserts),
        ("kernel profiling", features.kernel_profile),
        ("value printer", None if features.printer_level is None else features.printer_level > 0),
    )
    words = [f"{name} {'yes' if on else 'no'}" for name, on in parts if on is not None]
    return ", ".join(words)


def _inputs(contract: ModelContract) -> tuple[Block, ...]:
    used = {True: "yes", False: "no", None: ""}
    rows = [
        (leaf.path, package_view.leaf_text(leaf), leaf.generated_name or "", used[leaf.used])
        for leaf in contract.leaves
    ]
    headings = ("Leaf", "Expected", "In the code", "Used")
    label = f"Inputs ({contract.source})"
    table = TableBlock(label=label, headings=headings, rows=text_lines(rows), titled=True, formats=TERMINAL)
    symbols = tuple(
        (one.name, f"{one.definition}; in {', '.join(one.appears_in)}" if one.appears_in else one.definition)
        for one in contract.symbols
    )
    return (table, *((Pairs(rows=symbols, formats=TERMINAL),) if symbols else ()))


# Host and server.
def host_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """The host and the environment variables that may matter; of a log nothing, because it may come from elsewhere."""
    if report_view.is_unexamined(report) or log_page.is_log(report):
        return ()
    host = report.case.host
    return (
        *facts_table("Host", package_view.host_rows(host, whole=detail > 0), folded=True),
        *facts_table(
            "Environment", tuple(host.environment.items()) if detail > 0 else (), formats=TERMINAL + HTML, named=True
        ),
    )


def settings_blocks(report: Report) -> tuple[Block, ...]:
    """Which debug setting acts when, and which are set."""
    if report.command != "env":
        return ()
    environment = report.case.host.environment
    rows = [
        (f"{item.name}={environment[item.name]}" if item.name in environment else item.name, item.acts, item.what)
        for item in DEBUG_SETTINGS
    ]
    headings = ("Setting", "Acts", "What it does")
    return (TableBlock(label="Debug settings", headings=headings, rows=text_lines(rows), bare=headings[1:]),)
