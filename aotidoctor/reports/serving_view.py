"""What ``aotidoctor triton`` says of each model, as rows: the words are here, the layout is in the formats."""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.evidence import Evidence, FileSource, Severity
from aotidoctor.model.phrases import plural
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports.text import one_line

HEADINGS = ("Rule", "Line", "What happens", "Remedy")
# What a message does not say by itself.
_LETTERS: Mapping[object, str] = {"S": "silently wrong: ", "I": "note: "}


@record
class RuleRow:
    """One finding. ``severity`` is ``error``, ``warn`` or ``info``; ``about`` is its subject in the model."""

    rule: str
    line: str
    what: str
    remedy: str
    severity: str
    about: str


@record
class ModelRows:
    """A model with its rows, the worst first."""

    name: str
    rows: tuple[RuleRow, ...]


def is_serving(report: Report) -> bool:
    """Whether the report is one about models of a server."""
    return report.command == "triton" and bool(report.extra.get("release"))


def model_rows(report: Report, *, notes: bool) -> tuple[ModelRows, ...]:
    """All models that were judged; ``notes`` keeps findings without a complaint, too."""
    found = [item for item in report.findings if notes or item.severity is not Severity.INFO]
    return tuple(
        ModelRows(name=name, rows=tuple(_row(item) for item in found if item.facts.get("model") == name))
        for name in names(report)
    )


def names(report: Report) -> tuple[str, ...]:
    """The models that were judged."""
    return tuple(name for name in report.extra.get("models", "").split(", ") if name)


def release_text(report: Report) -> str:
    """``Triton 26.05 (server 2.69)``."""
    server = report.extra.get("server", "unknown")
    return f"Triton {report.extra['release']}" + (f" (server {server})" if server != "unknown" else "")


def summary(report: Report) -> str:
    """The headline of a repository in which nothing is wrong."""
    models = names(report)
    who = models[0] if len(models) == 1 else plural(len(models), "model")
    return f"{who}: nothing that {release_text(report)} would fail on"


def _row(item: Evidence) -> RuleRow:
    source = item.source
    line = ""
    if isinstance(source, FileSource):
        name = source.file.rpartition("/")[2]
        # The config is what the table is about; another file has to be named.
        line = name if source.line is None else str(source.line) if name == "config.pbtxt" else f"{name}:{source.line}"
    subject = (item.subject or "").partition(": ")[2]
    told = _LETTERS.get(item.facts.get("consequence"), "")
    return RuleRow(
        rule=item.code.rpartition("-")[2],
        line=one_line(line, 60),
        what=one_line(f"{told}{f'{subject}: ' if subject else ''}{_seen(item)}{item.message}", 500),
        remedy=one_line(str(item.facts.get("remedy") or ""), 300),
        severity=item.severity.value,
        about=subject,
    )


def _seen(item: Evidence) -> str:
    return f"{item.observed}; " if item.observed and item.observed not in item.message else ""
