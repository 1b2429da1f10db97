"""The formats that machines of others read: SARIF, JUnit and annotations, with what they need beside the report."""

from __future__ import annotations

from functools import lru_cache

from aotidoctor.model.report import Report

# Commands that ask every static check, and what starts the codes of those that one asks some of.
_ALL, _ARTIFACT = frozenset(("run", "check", "localize", "compare", "analyze")), "AD-ART"


def sarif(report: Report, fail_on: str) -> str:
    """The report as SARIF, with the manual's pages as help of the rules."""
    from aotidoctor.reports.sarif import render  # noqa: PLC0415 - only the chosen format is imported

    return render(report, fail_on, _page)


def junit(report: Report, fail_on: str) -> str:
    """The report as JUnit XML, with the checks that passed."""
    from aotidoctor.reports.junit import render  # noqa: PLC0415 - likewise

    return render(report, fail_on, _asked(report))


def github(report: Report) -> str:
    """The report as workflow commands."""
    from aotidoctor.reports.github import render  # noqa: PLC0415 - likewise

    return render(report)


@lru_cache(maxsize=256)
def _page(topic: str) -> tuple[str, str] | None:
    from aotidoctor.commands import explain  # noqa: PLC0415 - likewise

    page = explain.find(topic)
    return (page.name, page.text) if page is not None else None


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
