"""Write a report as workflow commands of GitHub Actions: ``::error file=...,line=...,title=...::message``.

One annotation per fault: a diagnosis stands at the place of its first evidence, and the rest of its evidence is an
annotation only at a place of its own. Notes without a problem are in the report.

GitHub shows at most ten annotations of a level and step; the rest are counted in a notice, so that ten of a level are
never silently the first ten of many. Line breaks are escaped, so that what a child printed stays inside one command.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Evidence, FileSource, Severity, plural, shorten
from aotidoctor.model.record import record
from aotidoctor.model.report import Diagnosis, Report
from aotidoctor.reports.package_view import finding_text, is_member, place_of
from aotidoctor.reports.page import report_view
from aotidoctor.reports.page.report_view import headline
from aotidoctor.reports.text import one_line, plain

# What GitHub shows of each level.
ANNOTATIONS_LISTED = 10
_LEVELS = {Severity.ERROR: "error", Severity.WARN: "warning", Severity.INFO: "notice"}
_TONES = {"bad": "error", "unsure": "warning", "partial": "error", "good": "notice"}
_MESSAGE = 2000


@record
class _Note:
    level: str
    title: str
    message: str
    place: FileSource | None = None


def render_github(report: Report) -> str:
    """``report`` as workflow commands, the verdict first."""
    # What stands on the first screen, at the place of the first evidence.
    head = headline(report)
    first = report.diagnoses[0] if report.diagnoses else None
    notes = [
        _Note(
            level=_TONES[head.tone],
            title=f"{head.word}: {first.cause}" if first is not None else head.word,
            message="\n".join([head.text, *report_view.first_lines(report)]),
            place=_place_of(report, first) if first is not None else None,
        ),
        *(_further(report, diagnosis) for diagnosis in report.diagnoses[1:]),
    ]
    taken = {note.place for note in notes}
    explained = {name for diagnosis in report.diagnoses for name in diagnosis.evidence}
    notes += [
        note
        for finding in report.findings
        if finding.severity is not Severity.INFO
        for note in [_finding(report, finding)]
        if finding.id not in explained or (note.place is not None and note.place.line and note.place not in taken)
    ]
    lines, left = [], dict.fromkeys(_LEVELS.values(), 0)
    # One place among the notices is kept for the count of what is left out.
    room = {"error": ANNOTATIONS_LISTED, "warning": ANNOTATIONS_LISTED, "notice": ANNOTATIONS_LISTED - 1}
    for note in notes:
        if room[note.level] > 0:
            room[note.level] -= 1
            lines.append(_command(note))
        else:
            left[note.level] += 1
    if any(left.values()):
        counts = ", ".join(plural(count, level) for level, count in left.items() if count)
        lines.append(_command(_Note(level="notice", title="aotidoctor: not shown", message=f"and {counts} more")))
    return "\n".join(lines) + "\n"


def _further(report: Report, diagnosis: Diagnosis) -> _Note:
    return _Note(
        level=_LEVELS[diagnosis.severity],
        title=f"{diagnosis.rank}. {diagnosis.cause}",
        message="\n".join([diagnosis.title, report_view.how_sure(diagnosis), diagnosis.remedy.text]),
        place=_place_of(report, diagnosis),
    )


def _place_of(report: Report, diagnosis: Diagnosis) -> FileSource | None:
    found = next(iter(report_view.evidence_of(report, diagnosis)), None)
    return _place(report, found) if found is not None else None


def _finding(report: Report, finding: Evidence) -> _Note:
    where = ", ".join(
        dict.fromkeys(filter(None, map(report_view.source_text, (place_of(report, finding), finding.source))))
    )
    return _Note(
        level=_LEVELS[finding.severity],
        title=f"{finding.code} {finding.kind}",
        message=finding_text(finding) + (f" [{where}]" if where else ""),
        place=_place(report, finding),
    )


def _place(report: Report, finding: Evidence) -> FileSource | None:
    """Where the annotation is attached. A member of the package is no file of the checkout: the package is."""
    source, package = place_of(report, finding), report.case.artifact.path
    if source is not None and not is_member(report.case.artifact, source.file):
        return source
    return FileSource(file=package) if package else None


def _command(note: _Note) -> str:
    place = note.place or FileSource(file="")
    fields = (
        ("file", one_line(place.file, 1000)),
        ("line", str(place.line or "")),
        ("col", str(place.column or "") if place.line else ""),
        ("title", one_line(note.title, 200)),
    )
    # A colon or comma would end a property.
    given = ((name, _data(value).replace(":", "%3A").replace(",", "%2C")) for name, value in fields if value)
    properties = ",".join(f"{name}={value}" for name, value in given)
    message = shorten(plain(note.message), _MESSAGE)
    return f"::{note.level} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
