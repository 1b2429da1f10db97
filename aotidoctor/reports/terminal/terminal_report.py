"""Show a report on a terminal, through rich: it reads well at 80 columns and without colour.

The first screen answers in this order: verdict, cause, subject, looked like → is, how sure, what to do. Evidence, runs,
contract, host and what was not checked come after it. Text of others is never taken for rich's markup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.console import Console
from rich.text import Text

from aotidoctor.model.evidence import Severity, plural
from aotidoctor.model.report import NOT_CONFINED, Report
from aotidoctor.reports.package_view import finding_text
from aotidoctor.reports.page import log_page, report_view, run_page
from aotidoctor.reports.page.report_page import is_calm, reasons, terminal_sections
from aotidoctor.reports.page.report_view import headline
from aotidoctor.reports.terminal.terminal_layout import TONES, Layout, capture_for_stream, capture_plain, show_section
from aotidoctor.reports.text import one_line, seconds


def terminal_text(report: Report, *, stream: TextIO, environ: Mapping[str, str], detail: int = 0) -> str:
    """``report`` as ``stream`` can show it: colour, width and character set are the stream's."""
    return capture_for_stream(
        lambda console: render_terminal(report, console, detail=detail), stream=stream, environ=environ
    )


def plain_terminal_text(report: Report, *, width: int = 80, detail: int = 0) -> str:
    """``report`` without colour at a fixed width."""
    return capture_plain(lambda console: render_terminal(report, console, detail=detail), width=width)


def render_terminal(report: Report, console: Console, *, detail: int = 0) -> None:
    """Print ``report``. ``detail``: -1 the first screen only, 0 normal, 1 with the output of children, 2 all."""
    out = Layout(console)
    if detail <= 0 and report_view.is_unexamined(report):
        out.headline(headline(report))
        return
    if detail <= 0 and report_view.is_other_file(report):
        out.headline(headline(report))
        remedy = report.diagnoses[0].remedy
        out.row("What to do", one_line(remedy.text))
        if remedy.command:
            out.code(remedy.command)
        return
    _first_screen(report, out)
    if detail < 0:
        # Whether there is a script is what was asked.
        _repro(report, out)
        if report.verdict == "healthy":
            # The headline counts them.
            for finding in report.findings:
                if finding.severity is Severity.WARN:
                    out.row("Warning", one_line(finding_text(finding), 400))
        return
    calm = is_calm(report, detail)
    for section in terminal_sections(report, detail):
        show_section(section, out)
    if calm:
        if report.compat is None:
            _calm(report, out)
        for number, (names, reason) in enumerate(reasons(report, detail)):
            out.row("" if number else "Not checked", f"{names}: {reason}")
    _footer(report, out, calm=calm, detail=detail)


def _first_screen(report: Report, out: Layout) -> None:
    out.headline(headline(report))
    if report_view.has_artifact(report):
        out.paragraph(report_view.artifact_text(report), style="dim")
    if report.log is not None and log_page.is_log(report):
        out.paragraph(log_page.log_text(report.log), style="dim")
    if note := report_view.partial_note(report):
        out.line(Text(f" {note}", style=TONES["partial"]))
    rows = report_view.first_rows(report)
    if rows:
        out.blank()
    for row in rows:
        if row.is_code:
            out.code(row.text)
        else:
            out.row(row.label, row.text)


def _calm(report: Report, out: Layout) -> None:
    """A healthy case in a line or two: what was looked at."""
    contract, inputs = report.case.contract, report.case.inputs
    if contract is not None:
        expected = f"{plural(contract.n_inputs, 'tensor')} expected"
        form = ", ".join(dict.fromkeys((inputs.format, inputs.form))) if inputs is not None else ""
        given = "" if inputs is None else f", {len(inputs.tensors())} given ({form})"
        out.row("Inputs", expected + given)
    if report.runs:
        ended: dict[str, list[str]] = {}
        for outcome in report.runs:
            ended.setdefault(run_page.run_ending(outcome), []).append(outcome.request.probe)
        spent = seconds(sum(outcome.seconds for outcome in report.runs))
        out.row("Ran", "; ".join(f"{', '.join(names)}: {ending}" for ending, names in ended.items()) + f"; {spent}")
        if NOT_CONFINED in report.extra:
            out.row("Confined", f"all but {one_line(report.extra[NOT_CONFINED])}")


def _repro(report: Report, out: Layout) -> None:
    for name, label in (("repro", "Repro "), ("repro_inputs", "  inputs:"), ("repro_weights", "  weights:")):
        if name in report.extra:
            out.line(Text(f" {label} {one_line(report.extra[name], 300)}", style="dim"))


def _footer(report: Report, out: Layout, *, calm: bool, detail: int) -> None:
    made = Text(f" aotidoctor {report.version}, {report.started}, {seconds(report.seconds)}", style="dim")
    if calm:
        _repro(report, out)
        out.line(made)
        return
    out.blank()
    if report.signature:
        out.line(Text(f" Signature {one_line(report.signature)}", style="dim"))
    if report.fingerprint is not None and detail > 0:
        # The coarser signature, and which rule gave which part of both.
        parts = detail > 1
        out.line(Text(f" Family    {one_line(report.fingerprint.family)}", style="dim"))
        for part in report.fingerprint.parts if parts else ():
            of = "family and exact" if part.granularity == "family" else "exact"
            source = f", {part.source}" if part.source else ""
            out.line(Text(f"   {part.rule}: {one_line(part.text)} ({of}{source})", style="dim"))
    _repro(report, out)
    for label, named in report_view.plugin_rows(report):
        out.line(Text(f" {label}: {named}", style="dim"))
    if report.diagnoses and report.command != "env":
        out.line(Text(f" More: aotidoctor explain {report.diagnoses[0].cause}", style="dim"))
    out.code(report_view.command_text(report.argv), label=" Again: ")
    out.line(made)
