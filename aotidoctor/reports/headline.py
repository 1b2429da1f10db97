"""The first line of every format for people: the verdict, and what it is about."""

from __future__ import annotations

from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.phrases import plural
from aotidoctor.model.report import Report
from aotidoctor.reports import contract_view, host_view, log_view, serving_view
from aotidoctor.reports.run_view import outcome_failed
from aotidoctor.reports.text import one_line
from aotidoctor.reports.tones import Headline

# Of a report on a program of the user's: its command.
WATCHED = "program"
_AGREEING = ("agrees", "precision")
# Two lines of a terminal: the whole message stands below.
_HEADLINE = 110


def headline(report: Report) -> Headline:
    """Verdict and cause."""
    if report.internal_error is not None:
        last = report.internal_error.strip().splitlines()[-1:] or ["no details"]
        return Headline("INTERNAL ERROR", f"aotidoctor itself failed: {one_line(last[0])}", "partial")
    if report.cannot_examine is not None:
        return Headline("CANNOT EXAMINE", one_line(report.cannot_examine), "partial")
    if report.compat is not None:
        from aotidoctor.reports import compat_view  # noqa: PLC0415 - for that command only

        return compat_view.headline(report.compat)
    return _verdict(report)


def _verdict(report: Report) -> Headline:
    match report.verdict:
        case "healthy" if report.log is not None and log_view.is_log(report):
            return Headline("NO FAILURE", log_view.calm(report.log), "good")
        case "healthy" if WATCHED in report.extra:
            return Headline("HEALTHY", f"the program succeeded{_warnings(report)}", "good")
        case "healthy":
            return _calm(report)
        case "problem" if report.diagnoses:
            first = report.diagnoses[0]
            harmless = first.severity is not Severity.ERROR
            text = f"{first.cause}: {_cut(one_line(first.title, 4 * _HEADLINE))}"
            return Headline("WARNING" if harmless else "PROBLEM", text, "unsure" if harmless else "bad")
        case "problem":
            text = one_line(report.extra.get("origin") or "see the evidence")
            return Headline("PROBLEM", _cut(text), "bad")
        case _ if report.log is not None and log_view.is_log(report):
            return Headline("UNKNOWN", log_view.unknown(report.log), "unsure")
        case _ if not any(outcome_failed(outcome) for outcome in report.runs):
            return Headline("UNKNOWN", "no verdict could be reached", "unsure")
        case _:
            return Headline("UNKNOWN", "it fails, and no known cause explains why", "unsure")


def _calm(report: Report) -> Headline:
    if report.command == "env":
        return Headline("HOST", host_view.summary(report.case.host), "good")
    if report.command == "inspect":
        return Headline("PACKAGE", contract_view.summary(report.case), "good")
    if serving_view.is_serving(report):
        return _servable(report)
    if report.command == "verify" and not report.interrupted:
        return Headline("HEALTHY", f"{_verified(report)}{_warnings(report)}", "good")
    if report.interrupted or report.out_of_time:
        return Headline("UNFINISHED", "nothing wrong found before it ended", "partial")
    if report.plan:
        return Headline("PLAN", f"{plural(len(report.plan), 'probe')}; nothing was run", "good")
    if report.command == "compare" and (found := _compared(report)) is not None:
        return Headline("HEALTHY", f"{_also_said(found)}{_warnings(report)}", "good")
    if not report.runs:
        return Headline("HEALTHY", "nothing wrong found; nothing was run", "good")
    calls = sum(1 for outcome in report.runs if not outcome_failed(outcome))
    if report.case.inputs is None:
        return Headline("HEALTHY", "it loads; nothing was called without --inputs or --generate", "good")
    return Headline("HEALTHY", f"nothing wrong found in {plural(calls, 'run')}{_warnings(report)}", "good")


def _servable(report: Report) -> Headline:
    if report.names is not None:
        from aotidoctor.reports import names_view  # noqa: PLC0415 - for names only

        return Headline("SERVABLE", names_view.summary(report), "good")
    return Headline("HEALTHY", f"{serving_view.summary(report)}{_warnings(report)}", "good")


def _verified(report: Report) -> str:
    own = (item for item in report.findings if not item.code.startswith("VERIFY-P"))
    notes = len([item for item in own if item.severity is Severity.INFO])
    origin = f"; {one_line(report.extra['origin'])}" if report.extra.get("origin") else ""
    said = "PyTorch's verifier passes it" if report.extra.get("verifier") == "passes" else "no rule is broken"
    return f"{said}; {plural(notes, 'note')} for AOTInductor{origin}"


def _warnings(report: Report) -> str:
    warnings = sum(1 for finding in report.findings if finding.severity is Severity.WARN)
    return f"; {plural(warnings, 'warning')}" if warnings else ""


def _compared(report: Report) -> Evidence | None:
    """What the comparison of the outputs found."""
    return next((item for item in report.findings if item.code == "AD-RUN-011" and item.kind in _AGREEING), None)


def _also_said(found: Evidence) -> str:
    """Agreement needs no numbers; where rounding makes a difference, they are what was asked for."""
    if found.kind == "agrees":
        return f"the package agrees with the reference: {_cut(one_line(found.observed, 4 * _HEADLINE))}"
    return f"rounding only: {found.subject}: {_cut(one_line(found.observed, 4 * _HEADLINE))}"


def _cut(line: str) -> str:
    return line if len(line) <= _HEADLINE else f"{line[:_HEADLINE].rstrip()}…"
