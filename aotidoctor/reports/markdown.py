"""Write a report as Markdown that fits the body of an issue: fewer than 65,536 characters.

Long parts are folded into ``<details>``; when the whole is too long it is written again with less room for each, and
what was cut is counted. It states the exact command and version that made it. Nothing in text of others can end a
fence, open a tag, mention a person or break a table.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from aotidoctor.model.evidence import plural
from aotidoctor.model.fleet import DocumentComparison
from aotidoctor.model.record import record
from aotidoctor.model.report import NOT_CONFINED, Report
from aotidoctor.model.run import Outcome
from aotidoctor.model.torch_names import DEBUG_SETTINGS
from aotidoctor.reports import localization_view, package_view, report_view, run_view
from aotidoctor.reports.executorch_view import executorch_rows
from aotidoctor.reports.localization_view import (
    COMPARISON_HEADINGS,
    STAGE_HEADINGS,
    STAGES_TITLE,
    comparison_reasons,
    comparison_rows,
    kernel_value_rows,
    stage_rows,
)
from aotidoctor.reports.report_view import headline
from aotidoctor.reports.text import one_line, plain, seconds, tail

# Text of others inside Markdown.
_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")
# What GitHub links in running text, however it is escaped: @name, #1, GH-1, URLs, hashes of commits.
_LINKED = re.compile(
    r"(?i)(@|#(?=\w)|\bgh-(?=\d)|:(?=//)|\bwww(?=\.)|\b(?=[0-9]*[a-f])(?=[a-f]*\d)[0-9a-f]{6}(?=[0-9a-f]+\b))"
)


def code(text: str, limit: int = 300) -> str:
    """Inline code. The run of backticks around it is longer than any inside; empty text is empty."""
    line = one_line(text, limit)
    if not line:
        return ""
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def cell(text: str, limit: int = 160) -> str:
    """Inline code inside a table: a bar would end the cell even there, so it becomes its look-alike."""
    return code(text.replace("|", "\u2502"), limit)


def prose(text: str, limit: int = 600) -> str:
    """Running text: what Markdown or HTML give a meaning is escaped, and nothing becomes a mention or a link."""
    return html.escape(_SPECIAL.sub(r"\\\1", prevent_links(one_line(text, limit))), quote=False)


def prevent_links(text: str) -> str:
    """``text`` in which GitHub sees no person, issue, commit or address: an invisible space breaks each."""
    return _LINKED.sub("\\1\u200b", text)


def fence(text: str, *, language: str = "text", budget: int = 4000) -> str:
    """A fenced block of the end of ``text``; the fence is longer than any run of backticks inside."""
    body = tail(text, budget)
    ticks = "`" * max(3, _longest_run(body) + 1)
    return f"{ticks}{language}\n{body}\n{ticks}"


def _longest_run(text: str) -> int:
    """Of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)


def details(summary: str, body: str) -> str:
    """A part that is folded away. The empty lines let the body be read as Markdown."""
    return (
        f"<details><summary>{html.escape(prevent_links(plain(summary)), quote=False)}</summary>\n\n{body}\n\n</details>"
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are already escaped."""
    lines = [f"| {' | '.join(headings)} |", f"|{'|'.join(' --- ' for _ in headings)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


# How much of each long part is shown.
# GitHub refuses a body of more than 65,536 characters. Counted in UTF-16 units, the larger of the ways to count.
LIMIT = 65_535


@record
class Budget:
    """Limits of long parts: characters of printed text, rows of tables, characters of a cell."""

    printed: int
    rows: int
    cell: int


# From generous to what nearly always fits: 8 rows of at most 7 cells of 40 characters in each table.
ROOMS = (
    Budget(printed=8000, rows=400, cell=240),
    Budget(printed=3000, rows=150, cell=160),
    Budget(printed=1000, rows=60, cell=120),
    Budget(printed=300, rows=30, cell=60),
    Budget(printed=100, rows=8, cell=40),
)


def length(text: str) -> int:
    """Length in UTF-16 units: what lies outside the basic plane counts twice."""
    return len(text) + sum(1 for letter in text if letter > "\uffff") if not text.isascii() else len(text)


def fit_parts(parts: Callable[[Budget], Sequence[str]]) -> str:
    """The parts in the largest budget in which they fit; in the smallest, later parts are left out and counted."""
    entries: list[str] = []
    for budget in ROOMS:
        entries = [part for part in parts(budget) if part]
        text = "\n\n".join(entries) + "\n"
        if length(text) <= LIMIT:
            return text
    items = [length(part) + 2 for part in entries]
    left: list[int] = []
    while sum(items) > LIMIT - 200:
        worst = max(range(1, len(items)), key=lambda index: items[index], default=0)
        if worst == 0 or items[worst] == 0:
            break
        left.append(worst)
        items[worst] = 0
    listed = [part for index, part in enumerate(entries) if index not in left]
    count = plural(len(left), "part")
    return "\n\n".join([*listed, f"{count} too long for an issue; the JSON report has everything."]) + "\n"


def cells(rows: Iterable[Sequence[str]], budget: Budget, *, times: int = 1) -> list[tuple[str, ...]]:
    """Rows of texts of others as cells, each with the room of ``times`` one."""
    return [tuple(cell(text, times * budget.cell) for text in row) for row in rows]


def section(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], budget: Budget) -> str:
    """A table under its title, with a count of the rows left out; nothing where there are no rows."""
    if not rows:
        return ""
    listed = table(headings, rows[: budget.rows])
    if len(rows) > budget.rows:
        listed += f"\n\nand {len(rows) - budget.rows} more."
    if len(rows) > 30:
        listed = details(f"{title} ({len(rows)})", listed)
    return f"### {title}\n\n{listed}"


# The place of a failure, and outputs against the reference's.
def place_sections(report: Report, budget: Budget) -> list[str]:
    """Write the place: culprit and chain, the calls that led to it, the native stack, the values of kernels."""
    place = report.localization
    if place is None:
        return []
    known = "\n".join(f"- **{label}:** {code(text, 600)}" for label, text in localization_view.place_rows(place))
    entries, _ = localization_view.timeline_rows(place, whole=True)
    calls = cells(entries[-budget.rows :], budget)
    frames = cells(localization_view.frame_rows(place, whole=True), budget)
    excerpt = localization_view.excerpt(place)
    values = kernel_value_rows(place.values, place.first_bad)
    sections = [
        f"### Where\n\n{known}" if known else "",
        section("Calls", ("", "Call", "Kind", "Took", "Made of"), calls, budget),
        section("Native stack", ("", "Function", "Place"), frames, budget),
        f"{code(excerpt.title)}\n\n{fence(excerpt.text, language='cpp', budget=budget.printed)}"
        if excerpt is not None
        else "",
        section("Values of kernels", values[0], cells(values[1:], budget), budget) if values else "",
    ]
    return [section for section in sections if section]


def comparison_section(report: Report, budget: Budget) -> str:
    """The stages from the model on, and the outputs against the reference's."""
    stages = section(STAGES_TITLE, STAGE_HEADINGS, cells(stage_rows(report), budget), budget)
    columns = section("Against the reference", COMPARISON_HEADINGS, cells(comparison_rows(report), budget), budget)
    return "\n\n".join(
        part for part in (stages, columns, *(prose(text) for text in comparison_reasons(report) if columns)) if part
    )


def render_markdown(report: Report) -> str:
    """``report`` as Markdown, shorter than GitHub's limit of 65,536 characters."""
    return fit_parts(partial(_parts, report))


def _parts(report: Report, budget: Budget) -> list[str]:
    parts = [_first(report), _plan(report, budget), comparison_section(report, budget), *place_sections(report, budget)]
    probes_rows = cells(run_view.probe_rows(report), budget)
    parts += [
        section(
            f"{run_view.PROBES_TITLE}: {run_view.probes_verdict(report)}", run_view.PROBE_HEADINGS, probes_rows, budget
        ),
        *models_sections(report, budget),
        *compat_sections(report, budget),
        log_section(report, budget),
        evidence_section(report, budget),
        runs_section(report, budget),
        contract_section(report, budget),
    ]
    if report.command == "inspect":
        parts.append(_package(report, budget))
    if report.command == "env":
        rows = [(code(item.name), item.acts, prose(item.what)) for item in DEBUG_SETTINGS]
        parts.append(section("Debug settings", ("Setting", "Acts", "What it does"), rows, budget))
    parts += [
        "" if run_view.is_log(report) else host_section(report),
        not_checked_section(report, budget),
        traceback_section(report, budget),
        provenance(report),
    ]
    return parts


def _first(report: Report) -> str:
    head = headline(report)
    lines = [f"## {head.word}: {prose(head.text, 200)}", ""]
    if report_view.has_artifact(report):
        lines += [code(report_view.artifact_text(report)), ""]
    if report.log is not None and run_view.is_log(report):
        lines += [code(run_view.log_text(report.log)), ""]
    if note := report_view.partial_note(report):
        lines += [f"**{note}**", ""]
    return "\n".join([*lines, *first_lines(report)]).rstrip("\n")


def first_lines(report: Report) -> list[str]:
    """The first screen under its headline, as a list."""
    lines: list[str] = []
    for number, row in enumerate(report_view.first_rows(report)):
        if row.is_code:
            lines += ["", fence(row.text, language="python", budget=2000), ""]
        else:
            text = code(row.text, 600) if row.label in ("Subject", "Looked like", "Known", "Says") else prose(row.text)
            # An unlabelled line goes on with the row before it.
            lines.append(f"- **{row.label}:** {text}" if row.label or number == 0 else f"- {text}")
    return lines


def _plan(report: Report, budget: Budget) -> str:
    if not report.plan:
        return ""
    steps = [f"{number}. {prose(step, budget.cell * 3)}" for number, step in enumerate(report.plan[: budget.rows], 1)]
    return "### Plan\n\n" + "\n".join(steps)


def evidence_section(report: Report, budget: Budget) -> str:
    """The findings, with what was observed and expected."""
    if run_view.is_serving(report):
        return ""  # The tables of the models have said it.
    rows = [
        (
            item.id,
            item.severity.value,
            cell(f"{item.code} {item.kind}", budget.cell),
            cell(item.subject or "", budget.cell),
            cell(item.observed or item.message, budget.cell),
            cell(item.expected, budget.cell),
            cell(report_view.source_text(item.source), budget.cell),
        )
        for item in report.findings
    ]
    return section("Evidence", ("", "", "Code", "Subject", "Observed", "Expected", "Source"), rows, budget)


def log_section(report: Report, budget: Budget) -> str:
    """Write the failures that a log contains, and what else it states."""
    if report.log is None:
        return ""
    listed, _ = run_view.log_rows(report.log, whole=True)
    rows = [(row.line, cell(row.message, 2 * budget.cell), cell(row.what, budget.cell)) for row in listed]
    words = "\n".join(f"- **{label}:** {code(text, 600)}" for label, text in run_view.log_facts(report.log))
    return "\n\n".join(part for part in (section("Log", run_view.LOG_HEADINGS, rows, budget), words) if part)


def models_sections(report: Report, budget: Budget) -> list[str]:
    """Per model of a repository what its server would make of it."""
    if not run_view.is_serving(report):
        return []
    sections = [
        section(title, run_view.NAME_HEADINGS, cells(rows, budget), budget)
        for title, rows in run_view.name_tables(report)
    ]
    for model in run_view.model_rows(report, notes=True):
        if report.names is not None and not model.rows:
            continue
        rows = cells(((row.rule, row.line, row.what, row.remedy) for row in model.rows), budget, times=2)
        title = prose(f"{model.name} on {run_view.release_text(report)}", 200)
        sections.append(section(title, run_view.RULE_HEADINGS, rows, budget) or f"### {title}\n\nNothing wrong found.")
    return sections[: budget.rows]


def compat_sections(report: Report, budget: Budget) -> list[str]:
    """Packages and hosts: the matrix, every answer with its reason, and what each package needs."""
    if report.compat is None:
        return []
    matrix = localization_view.compat_matrix(report.compat)
    tables = [(localization_view.COMPAT_MATRIX, *matrix)] if matrix is not None else []
    tables.append(("Answers", localization_view.COMPAT_HEADINGS, localization_view.answer_rows(report.compat)))
    tables += [(title, ("", ""), rows) for title, rows in localization_view.needs_tables(report.compat)]
    return [
        section(prose(title, 200), headings, cells(rows, budget, times=3), budget)
        for title, headings, rows in tables[: budget.rows]
    ]


def runs_section(report: Report, budget: Budget, *, printed: bool = True) -> str:
    """The child runs, and what each printed."""
    rows = [
        (
            outcome.id,
            cell(outcome.request.probe, budget.cell),
            cell(run_view.env_text(outcome.request.env), budget.cell),
            cell(run_view.run_ending(outcome), budget.cell),
            cell(outcome.stage, budget.cell),
            seconds(outcome.seconds),
            _effect(outcome, budget),
        )
        for outcome in report.runs
    ]
    headings = ("", "Probe", "Environment", "Ended", "In", "Time", "Setting took effect")
    listed = section("Runs", headings, rows, budget)
    parts = [_print_output(outcome, budget) for outcome in report.runs[: budget.rows]] if printed else []
    free = f"Confined: all but {prose(report.extra[NOT_CONFINED], 400)}" if NOT_CONFINED in report.extra else ""
    return "\n\n".join(part for part in (listed, free, *parts) if part)


def _effect(outcome: Outcome, budget: Budget) -> str:
    why = f": {cell(outcome.took_effect_why, budget.cell)}" if outcome.took_effect_why else ""
    return f"{run_view.took_effect(outcome)}{why}" if run_view.took_effect(outcome) else ""


def _print_output(outcome: Outcome, budget: Budget) -> str:
    error = outcome.error
    parts = (
        ("error", (error.traceback or error.message) if error is not None else ""),
        ("stdout", outcome.stdout_tail),
        ("stderr", outcome.stderr_tail),
    )
    blocks = [f"{name}:\n\n{fence(text, budget=budget.printed)}" for name, text in parts if text.strip()]
    return details(f"{outcome.id} printed", "\n\n".join(blocks)) if blocks else ""


def contract_section(report: Report, budget: Budget) -> str:
    """The contract beside the inputs, leaf by leaf."""
    marks = {"": "", "warn": "⚠", "error": "✗"}
    leaves = package_view.leaf_rows(report)
    given = report.case.inputs is not None
    # Marked leaves first, so that cutting never hides the one that matters.
    ordered = sorted(leaves, key=lambda row: not row.mark) if len(leaves) > budget.rows else leaves
    rows = [
        (
            marks[row.mark],
            cell(row.path, budget.cell),
            cell(row.expected, budget.cell),
            *((cell(row.observed or "", budget.cell),) if given else ()),
        )
        for row in ordered
    ]
    listed = section("Contract", ("", "Leaf", "Expected", *(("Observed",) if given else ())), rows, budget)
    notes = report.case.inputs.notes if report.case.inputs is not None and listed else ()
    return "\n\n".join([listed, *(f"Inputs: {prose(text)}" for text in notes)])


def _package(report: Report, budget: Budget) -> str:
    contract, content = report.case.contract, report.case.artifact.executorch
    parts = executorch_rows(content) if content is not None else ()
    program = section("ExecuTorch", ("", ""), cells(parts, budget), budget)
    if contract is None:
        return program
    outputs = ((item.path, package_view.output_text(item)) for item in contract.outputs)
    constants = ((item.fqn, package_view.constant_text(item)) for item in contract.constants)
    kernels = ((item.name, package_view.kernel_text(item)) for item in contract.kernels)
    needs = [(label, cell(text, budget.cell)) for label, text in package_view.needs_rows(contract)]
    sections = (
        program,
        section("Outputs", ("", ""), cells(outputs, budget), budget),
        section("Constants", ("Name", ""), cells(constants, budget), budget),
        section("Calls, in order", ("Name", "Origin"), cells(kernels, budget), budget),
        section("Host requirements", ("", ""), needs, budget),
    )
    return "\n\n".join(section for section in sections if section)


def host_section(report: Report) -> str:
    """Write the table of the host."""
    if report_view.is_unexamined(report):
        return ""
    rows = [(label, cell(text)) for label, text in package_view.host_rows(report.case.host, whole=True)]
    return f"### Host\n\n{details(plural(len(rows), 'fact'), table(('', ''), rows))}"


def not_checked_section(report: Report, budget: Budget) -> str:
    """List what was not checked, and why."""
    rows = [
        (code(item.code), cell(item.name, budget.cell), cell(item.reason, budget.cell)) for item in report.not_checked
    ]
    return section("Not checked", ("Code", "Name", "Why"), rows, budget)


def traceback_section(report: Report, budget: Budget) -> str:
    """The traceback of aotidoctor itself."""
    if report.internal_error is None:
        return ""
    return f"### Traceback of aotidoctor\n\n{fence(report.internal_error, budget=budget.printed)}"


def provenance(report: Report) -> str:
    """The command, signature and version."""
    family = f" (family {code(report.fingerprint.family)})" if report.fingerprint is not None else ""
    signature = f"\n\nSignature: {code(report.signature)}{family}" if report.signature else ""
    command = fence(report_view.command_text(report.argv), language="sh", budget=4000)
    made = f"Made by aotidoctor {prose(report.version)} at {report.started} in {seconds(report.seconds)}."
    plugins = "".join(f"\n\n{prose(label)}: {prose(text)}" for label, text in report_view.plugin_rows(report))
    return f"### Again\n\n{command}{signature}{plugins}\n\n{made}"


# A comparison of two documents.
def render_difference_markdown(found: DocumentComparison) -> str:
    """``found`` as Markdown."""
    return fit_parts(partial(_difference_parts, found))


def _difference_parts(found: DocumentComparison, budget: Budget) -> list[str]:
    head = localization_view.difference_headline(found)
    sides = "\n".join(
        f"- **{side.label}:** {code(localization_view.side_text(side), 400)}" for side in (found.a, found.b)
    )
    counts = "\n".join(f"- **{label}:** {prose(text)}" for label, text in localization_view.difference_counts(found))
    unknown = "\n".join(f"- {prose(line, budget.cell * 2)}" for line in found.unknown[: budget.rows])
    more = len(found.unknown) - budget.rows
    if more > 0:
        unknown += f"\n\nand {more} more."
    return [
        f"## {head.word}: {prose(head.text, 300)}",
        sides,
        _differences(found, budget),
        counts,
        details("Unknown on one side", unknown) if unknown else "",
    ]


def _differences(found: DocumentComparison, budget: Budget) -> str:
    rows = []
    for item in found.differences[: budget.rows]:
        mark, what, a, b, playbook, why = localization_view.difference_row(item)
        listed = (str(item.rank), mark, prose(what, budget.cell), cell(a, budget.cell), cell(b, budget.cell))
        rows.append((*listed, cell(playbook, budget.cell), prose(why, budget.cell * 2)))
    if not rows:
        return ""
    shown_table = table(("", *localization_view.DIFFERENCE_HEADINGS), rows)
    more = len(found.differences) - len(rows)
    return f"### Differences\n\n{shown_table}" + (f"\n\nand {more} more." if more > 0 else "")
