"""What the package holds, what the host offers, what a server would do, and how to make the report again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aotidoctor.model.phrases import plural
from aotidoctor.model.report import Report
from aotidoctor.reports import compat_view, contract_view, host_view, names_view, serving_view, view
from aotidoctor.reports.comparison_view import HEADINGS, comparison_rows, reasons
from aotidoctor.reports.debug_settings import SETTINGS
from aotidoctor.reports.html import text as html_text
from aotidoctor.reports.html.blocks import (
    Block,
    Command,
    Folded,
    Line,
    Note,
    Pairs,
    Steps,
    Table,
    cell,
    cut,
    mono,
    printed,
    texts,
)
from aotidoctor.reports.html.figures import error_figure

_ROOM = 400
_TRACEBACK = 40_000
_TONES = {"": "", "!": "unsure", "x": "bad", "info": "", "warn": "unsure", "error": "bad"}


def plan_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """What would be run."""
    return (Steps(items=tuple(html_text.linked(step, known) for step in report.plan)),) if report.plan else ()


def comparison_blocks(report: Report) -> tuple[Block, ...]:
    """Output by output against the reference: drawn, and as numbers."""
    rows = comparison_rows(report)
    if not rows or report.localization is None:
        return ()
    lines, more = cut("outputs", texts([row[1:] for row in rows], tones=[_TONES[row[0]] for row in rows]), _ROOM)
    table = Table(label="Outputs against the reference", headings=HEADINGS[1:], rows=lines, look="numbers")
    why = tuple(Note(body=html_text.line(text)) for text in reasons(report))
    return (*error_figure(report.localization.comparison), table, *more, *why)


def serving_blocks(report: Report) -> tuple[Block, ...]:
    """Names, then per model what its server would make of it."""
    if not serving_view.is_serving(report):
        return ()
    blocks: list[Block] = [
        Table(label=title, headings=names_view.HEADINGS, rows=texts(rows), stacks=True, titled=True)
        for title, rows in names_view.tables(report)
    ]
    for model in serving_view.model_rows(report, notes=True)[:_ROOM]:
        if report.names is not None and not model.rows:
            continue
        label = f"{model.name} on {serving_view.release_text(report)}"
        rows = [(row.rule, row.line, row.what, row.remedy) for row in model.rows]
        lines, more = cut("rows", texts(rows, tones=[_TONES[row.severity] for row in model.rows]), _ROOM)
        table = Table(label=label, headings=serving_view.HEADINGS, rows=lines, stacks=True, titled=True)
        nothing = Note(body=html_text.line(f"{label}: nothing wrong found"))
        blocks += [table, *more] if lines else [nothing]
    return tuple(blocks)


def compat_blocks(report: Report) -> tuple[Block, ...]:
    """Packages and hosts: the matrix, every answer with its reason, and what each package needs."""
    found = report.compat
    if found is None:
        return ()
    matrix = compat_view.matrix(found)
    tones = [compat_view.TONES[item.answer] for item in found.answers]
    lines, more = cut("answers", texts(compat_view.answer_rows(found), tones=tones), _ROOM)
    blocks: list[Block] = [Table(label="Answers", headings=compat_view.HEADINGS, rows=lines, stacks=True), *more]
    if matrix is not None:
        blocks.insert(0, Table(label=compat_view.MATRIX, headings=matrix[0], rows=texts(matrix[1]), titled=True))
    for title, rows in compat_view.needs_tables(found)[:_ROOM]:
        blocks += [
            Note(body=html_text.line(title)),
            Pairs(rows=tuple((label, html_text.line(text)) for label, text in rows)),
        ]
    return tuple(blocks)


def package_blocks(report: Report) -> tuple[Block, ...]:
    """What ``inspect`` shows besides the inputs: outputs, constants, calls, needs."""
    contract = report.case.contract
    if contract is None or report.command != "inspect":
        return ()
    outputs = [(item.path, contract_view.output_text(item)) for item in contract.outputs]
    constants = [(item.fqn, contract_view.constant_text(item)) for item in contract.constants]
    calls = [(item.name, contract_view.kernel_text(item)) for item in contract.kernels]
    tables = (
        _named("Outputs", ("Output", "What it is"), outputs),
        _named("Constants", ("Constant", "What it is"), constants),
        _named("Calls, in order", ("Call", "Made of"), calls),
        _named("Host requirements", ("Need", "What it is"), contract_view.needs_rows(contract)),
    )
    return tuple(block for blocks in tables for block in blocks)


def _named(label: str, headings: tuple[str, str], rows: Sequence[tuple[str, str]]) -> tuple[Block, ...]:
    lines = [Line(cells=(cell(html_text.code(name), heads=True), cell(html_text.line(text)))) for name, text in rows]
    shown, more = cut("rows", lines, _ROOM)
    return (Table(label=label, headings=headings, rows=shown), *more) if shown else ()


def host_blocks(report: Report) -> tuple[Block, ...]:
    """What this machine offers, and what of its environment may matter."""
    host = report.case.host
    rows = tuple((label, html_text.line(text, 900)) for label, text in host_view.rows(host, whole=True))
    blocks: list[Block] = [Pairs(rows=rows)]
    if host.environment:
        told = tuple((name, html_text.code(text)) for name, text in host.environment.items())
        title = html_text.line(plural(len(told), "environment variable"))
        blocks.append(Folded(summary=title, blocks=(Pairs(rows=told[:_ROOM]),)))
    return tuple(blocks)


def settings_blocks(report: Report) -> tuple[Block, ...]:
    """Which debug setting acts when."""
    if report.command != "env":
        return ()
    rows = tuple(Line(cells=(mono(item.name), cell(item.acts), cell(item.what))) for item in SETTINGS)
    return (Table(label="Debug settings", headings=("Setting", "Acts", "What it does"), rows=rows, stacks=True),)


def traceback_blocks(report: Report) -> tuple[Block, ...]:
    """Where aotidoctor itself failed."""
    return () if report.internal_error is None else printed("Traceback", report.internal_error, _TRACEBACK)


def again_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """The command that made it, and the fingerprint of the failure with what went into it."""
    blocks: list[Block] = [Command(text=view.command_text(report.argv))]
    mark = report.fingerprint
    if mark is None:
        signature = (("Signature", html_text.code(report.signature or "")),) if report.signature else ()
        return (*blocks, *((Pairs(rows=signature),) if signature else ()))
    rows = (("Signature", html_text.code(mark.exact)), ("Of its family", html_text.code(mark.family)))
    parts = tuple(
        Line(
            cells=(
                cell(part.rule, heads=True),
                mono(part.text),
                cell(part.granularity, tone="dim"),
                cell(html_text.linked(part.source, known)),
            )
        )
        for part in mark.parts[:_ROOM]
    )
    table = Table(label="Parts of the signature", headings=("Rule", "Part", "In", "From"), rows=parts)
    folded = Folded(summary=html_text.line(f"{plural(len(parts), 'part')}, version {mark.version}"), blocks=(table,))
    return (*blocks, Pairs(rows=rows), *((folded,) if parts else ()))
