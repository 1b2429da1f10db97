"""Cases of a desk for people, as a list or each whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

from aotidoctor.model.history import CaseRecord, Note
from aotidoctor.model.phrases import plural
from aotidoctor.reports.history_view import day
from aotidoctor.reports.markdown.text import cell, code, prose, table
from aotidoctor.reports.text import one_line

HEADINGS = ("#", "Seen", "Last", "Cause", "What", "Signature")
_SIGHTINGS = 50


def _row(record: CaseRecord) -> tuple[str, ...]:
    what = one_line(record.title or record.looked_like, 120)
    return str(record.number), str(record.count), record.last_seen[:10], record.cause, what, record.signature


def _facts(record: CaseRecord) -> list[tuple[str, str]]:
    rows = [
        ("Cause", record.cause),
        ("What", one_line(record.title, 300)),
        ("Looked like", one_line(record.looked_like, 300)),
        ("Seen", f"{plural(record.count, 'time')}, {day(record.first_seen)} to {day(record.last_seen)}"),
        ("Signature", record.signature),
        ("Family", record.family),
    ]
    return [row for row in rows if row[1]]


def _note(note: Note) -> tuple[str, str]:
    return ("Solved" if note.solved else "Note"), f"{day(note.at)}: {one_line(note.text, 2000)}"


def _seen(record: CaseRecord) -> list[tuple[str, ...]]:
    return [
        (
            one.at[:16].replace("T", " "),
            one.command,
            one_line(one.package, 80),
            one_line(one.subject, 80),
            one.host_class,
            one.status,
        )
        for one in reversed(record.sightings[-_SIGHTINGS:])
    ]


_SEEN = ("When", "Command", "Package", "Subject", "Host", "How sure")


def markdown(found: Sequence[CaseRecord], *, whole: bool) -> str:
    """``found`` as Markdown: a list, or each whole."""
    if not whole:
        rows = [tuple(cell(text) for text in _row(record)) for record in found]
        return f"## {plural(len(found), 'case')}\n\n" + (table(HEADINGS, rows) + "\n" if rows else "")
    parts = []
    for record in found:
        parts.append(f"## Case {record.number}: {prose(record.cause)}\n")
        parts += [f"- **{label}:** {code(text, 600)}" for label, text in _facts(record)]
        parts += [f"- **{label}:** {prose(text, 2000)}" for label, text in map(_note, record.notes)]
        rows = [tuple(cell(text) for text in row) for row in _seen(record)]
        parts.append("\n" + table(_SEEN, rows) + "\n")
    return "\n".join(parts)


def text(found: Sequence[CaseRecord], *, stream: TextIO, environ: Mapping[str, str], whole: bool) -> str:
    """``found`` for a terminal."""
    from aotidoctor.reports.terminal.tables import Part, shown  # noqa: PLC0415 - rich is imported for a terminal only

    if not whole:
        head = plural(len(found), "case")
        return shown(
            [Part(title=head, headings=HEADINGS, rows=tuple(map(_row, found)))], stream=stream, environ=environ
        )
    parts = []
    for record in found:
        notes = tuple(map(_note, record.notes))
        title = f"Case {record.number}: {record.cause}"
        parts.append(Part(title=title, labelled=(*_facts(record), *notes)))
        parts.append(Part(title="Seen", headings=_SEEN, rows=tuple(_seen(record))))
    return shown(parts, stream=stream, environ=environ)
