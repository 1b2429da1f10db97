"""``FORMATS``: the formats of a report, by name. Only the chosen one is imported: rich alone doubles the start-up time.

A format is a folder or file of ``reports/`` whose ``render`` takes a report; what it needs beside the report (the
manual's pages, the checks that were asked, the width of a terminal) is handed to it here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from io import StringIO

from aotidoctor.model.record import record
from aotidoctor.model.report import Report

# Commands that ask every static check, and what starts the codes of those that one asks some of.
_ALL, _ARTIFACT = frozenset(("run", "check", "localize", "compare", "analyze")), "AD-ART"


@record
class Wanted:
    """What a format may need to know: severity that fails, issue form, where the repro lies, detail, environment."""

    fail_on: str = "error"
    form: str = "generic"
    repro: str | None = None
    detail: int = 0
    environ: Mapping[str, str] = field(default_factory=dict)


Render = Callable[[Report, Wanted], str]


def _json(report: Report, _wanted: Wanted) -> str:
    from aotidoctor.reports.json.render import render  # noqa: PLC0415 - only the chosen format is imported

    return render(report)


def _markdown(report: Report, wanted: Wanted) -> str:
    """Or the issue form of a project, filled."""
    if wanted.form != "generic":
        from aotidoctor.reports.issue import render as fill  # noqa: PLC0415 - likewise

        return fill(report, wanted.form, wanted.repro)
    from aotidoctor.reports.markdown.render import render  # noqa: PLC0415 - likewise

    return render(report)


def _html(report: Report, _wanted: Wanted) -> str:
    from aotidoctor.reports.html.render import render  # noqa: PLC0415 - likewise

    return render(report)


def _sarif(report: Report, wanted: Wanted) -> str:
    """With the manual's pages as help of the rules."""
    from aotidoctor.commands.explain import name_and_text  # noqa: PLC0415 - likewise
    from aotidoctor.reports.sarif import render  # noqa: PLC0415 - likewise

    return render(report, wanted.fail_on, name_and_text)


def _junit(report: Report, wanted: Wanted) -> str:
    """With the checks that passed."""
    from aotidoctor.reports.junit import render  # noqa: PLC0415 - likewise

    return render(report, wanted.fail_on, _asked(report))


def _github(report: Report, _wanted: Wanted) -> str:
    from aotidoctor.reports.github import render  # noqa: PLC0415 - likewise

    return render(report)


def _rich(report: Report, wanted: Wanted) -> str:
    from aotidoctor.reports.terminal.render import text  # noqa: PLC0415 - likewise

    return text(report, stream=sys.stdout or StringIO(), environ=wanted.environ, detail=wanted.detail)


FORMATS: Mapping[str, Render] = {
    "rich": _rich,
    "md": _markdown,
    "json": _json,
    "html": _html,
    "sarif": _sarif,
    "junit": _junit,
    "github": _github,
}


def _asked(report: Report) -> dict[str, str]:
    """Code and name of the checks or rules that were asked; none of a report that stands in for one."""
    if report.interrupted or "from" in report.extra:
        return {}
    if not report.findings and not report.not_checked and report.verdict != "healthy":
        return {}
    # The stages have been imported by then.
    if report.command == "triton" and report.extra.get("release") and report.names is None:
        from aotidoctor.triton.rules import RULES  # noqa: PLC0415

        return {rule.code: rule.title for rule in RULES}
    if report.command not in _ALL and report.command != "inspect":
        return {}
    from aotidoctor.checks import CHECKS  # noqa: PLC0415

    return {check.code: check.name for check in CHECKS if report.command in _ALL or check.code.startswith(_ARTIFACT)}
