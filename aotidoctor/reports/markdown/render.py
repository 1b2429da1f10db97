"""The report as Markdown that fits the body of an issue: fewer than 65,536 characters.

Long parts are folded into ``<details>``; when the whole is too long it is written again with less room for each, and
what was cut is counted. It states the exact command and version that made it.
"""

from __future__ import annotations

from functools import partial

from aotidoctor.model.phrases import plural
from aotidoctor.model.report import Report
from aotidoctor.model.run import Outcome
from aotidoctor.reports import (
    compat_view,
    contract_view,
    host_view,
    log_view,
    names_view,
    probe_rows,
    run_view,
    serving_view,
    view,
)
from aotidoctor.reports.debug_settings import SETTINGS
from aotidoctor.reports.headline import headline
from aotidoctor.reports.markdown.budget import Budget, cells, fitted, section
from aotidoctor.reports.markdown.place import comparison_section, place_sections
from aotidoctor.reports.markdown.text import cell, code, details, fence, prose, table
from aotidoctor.reports.text import seconds


def render(report: Report) -> str:
    """``report`` as Markdown, shorter than GitHub's limit of 65,536 characters."""
    return fitted(partial(_parts, report))


def _parts(report: Report, budget: Budget) -> list[str]:
    parts = [_first(report), _plan(report, budget), comparison_section(report, budget), *place_sections(report, budget)]
    parts += [
        _probes(report, budget),
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
        rows = [(code(item.name), item.acts, prose(item.what)) for item in SETTINGS]
        parts.append(section("Debug settings", ("Setting", "Acts", "What it does"), rows, budget))
    parts += [
        "" if log_view.is_log(report) else host_section(report),
        not_checked_section(report, budget),
        traceback_section(report, budget),
        provenance(report),
    ]
    return parts


def _first(report: Report) -> str:
    head = headline(report)
    lines = [f"## {head.word}: {prose(head.text, 200)}", ""]
    if view.has_artifact(report):
        lines += [code(view.artifact_text(report)), ""]
    if report.log is not None and log_view.is_log(report):
        lines += [code(log_view.log_text(report.log)), ""]
    if note := view.partial_note(report):
        lines += [f"**{note}**", ""]
    return "\n".join([*lines, *first_lines(report)]).rstrip("\n")


def first_lines(report: Report) -> list[str]:
    """The first screen under its headline, as a list."""
    lines: list[str] = []
    for number, row in enumerate(view.first_rows(report)):
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
    if serving_view.is_serving(report):
        return ""  # The tables of the models have said it.
    rows = [
        (
            item.id,
            item.severity.value,
            cell(f"{item.code} {item.kind}", budget.cell),
            cell(item.subject or "", budget.cell),
            cell(item.observed or item.message, budget.cell),
            cell(item.expected, budget.cell),
            cell(view.source_text(item.source), budget.cell),
        )
        for item in report.findings
    ]
    return section("Evidence", ("", "", "Code", "Subject", "Observed", "Expected", "Source"), rows, budget)


def log_section(report: Report, budget: Budget) -> str:
    """What a log said, and what else it tells."""
    if report.log is None:
        return ""
    shown, _ = log_view.rows(report.log, whole=True)
    rows = [(row.line, cell(row.said, 2 * budget.cell), cell(row.what, budget.cell)) for row in shown]
    told = "\n".join(f"- **{label}:** {code(text, 600)}" for label, text in log_view.facts(report.log))
    return "\n\n".join(part for part in (section("Log", log_view.HEADINGS, rows, budget), told) if part)


def _probes(report: Report, budget: Budget) -> str:
    rows = cells(probe_rows.probe_rows(report), budget)
    return section(f"{probe_rows.TITLE}: {probe_rows.verdict(report)}", probe_rows.HEADINGS, rows, budget)


def models_sections(report: Report, budget: Budget) -> list[str]:
    """Per model of a repository what its server would make of it."""
    if not serving_view.is_serving(report):
        return []
    sections = [
        section(title, names_view.HEADINGS, cells(rows, budget), budget) for title, rows in names_view.tables(report)
    ]
    for model in serving_view.model_rows(report, notes=True):
        if report.names is not None and not model.rows:
            continue
        rows = cells(((row.rule, row.line, row.what, row.remedy) for row in model.rows), budget, times=2)
        title = prose(f"{model.name} on {serving_view.release_text(report)}", 200)
        sections.append(section(title, serving_view.HEADINGS, rows, budget) or f"### {title}\n\nNothing wrong found.")
    return sections[: budget.rows]


def compat_sections(report: Report, budget: Budget) -> list[str]:
    """Packages and hosts: the matrix, every answer with its reason, and what each package needs."""
    if report.compat is None:
        return []
    matrix = compat_view.matrix(report.compat)
    tables = [(compat_view.MATRIX, *matrix)] if matrix is not None else []
    tables.append(("Answers", compat_view.HEADINGS, compat_view.answer_rows(report.compat)))
    tables += [(title, ("", ""), rows) for title, rows in compat_view.needs_tables(report.compat)]
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
    shown = section("Runs", headings, rows, budget)
    told = [_printed(outcome, budget) for outcome in report.runs[: budget.rows]] if printed else []
    return "\n\n".join(part for part in (shown, *told) if part)


def _effect(outcome: Outcome, budget: Budget) -> str:
    why = f": {cell(outcome.took_effect_why, budget.cell)}" if outcome.took_effect_why else ""
    return f"{run_view.took_effect(outcome)}{why}" if run_view.took_effect(outcome) else ""


def _printed(outcome: Outcome, budget: Budget) -> str:
    error = outcome.error
    told = (
        ("error", (error.traceback or error.message) if error is not None else ""),
        ("stdout", outcome.stdout_tail),
        ("stderr", outcome.stderr_tail),
    )
    blocks = [f"{name}:\n\n{fence(text, budget=budget.printed)}" for name, text in told if text.strip()]
    return details(f"{outcome.id} printed", "\n\n".join(blocks)) if blocks else ""


def contract_section(report: Report, budget: Budget) -> str:
    """The contract beside the inputs, leaf by leaf."""
    marks = {"": "", "warn": "⚠", "error": "✗"}
    leaves = contract_view.leaf_rows(report)
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
    return section("Contract", ("", "Leaf", "Expected", *(("Observed",) if given else ())), rows, budget)


def _package(report: Report, budget: Budget) -> str:
    contract = report.case.contract
    if contract is None:
        return ""
    outputs = ((item.path, contract_view.output_text(item)) for item in contract.outputs)
    constants = ((item.fqn, contract_view.constant_text(item)) for item in contract.constants)
    kernels = ((item.name, contract_view.kernel_text(item)) for item in contract.kernels)
    needs = [(label, cell(text, budget.cell)) for label, text in contract_view.needs_rows(contract)]
    sections = (
        section("Outputs", ("", ""), cells(outputs, budget), budget),
        section("Constants", ("Name", ""), cells(constants, budget), budget),
        section("Calls, in order", ("Name", "Origin"), cells(kernels, budget), budget),
        section("Host requirements", ("", ""), needs, budget),
    )
    return "\n\n".join(section for section in sections if section)


def host_section(report: Report) -> str:
    """What the host offers."""
    rows = [(label, cell(text)) for label, text in host_view.rows(report.case.host, whole=True)]
    return f"### Host\n\n{details(plural(len(rows), 'fact'), table(('', ''), rows))}"


def not_checked_section(report: Report, budget: Budget) -> str:
    """What was not looked at, and why."""
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
    command = fence(view.command_text(report.argv), language="sh", budget=4000)
    made = f"Made by aotidoctor {prose(report.version)} at {report.started} in {seconds(report.seconds)}."
    plugins = "".join(f"\n\n{prose(label)}: {prose(text)}" for label, text in view.plugin_rows(report))
    return f"### Again\n\n{command}{signature}{plugins}\n\n{made}"
