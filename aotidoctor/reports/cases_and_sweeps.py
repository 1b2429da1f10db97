"""Write the cases of a desk and the rows of a sweep as text, Markdown and, for sweeps, an HTML page.

The page of a sweep has a map, with a line per subject and a column per axis, whose squares lead to the rows below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TextIO

from aotidoctor.model.case import CaseNote, CaseRecord
from aotidoctor.model.evidence import plural
from aotidoctor.model.fleet import Does, Sweep, SweepRow, SweepVerdict
from aotidoctor.reports.json.json_report import pick_fields
from aotidoctor.reports.markdown import ROOMS, prose, section_parts
from aotidoctor.reports.page.blocks import (
    HTML,
    MARKDOWN,
    TERMINAL,
    Cell,
    EntriesBlock,
    Entry,
    NoteBlock,
    PageSection,
    Pairs,
    Span,
    TableBlock,
    TableLine,
    text_lines,
)
from aotidoctor.reports.page.report_view import day_text
from aotidoctor.reports.text import Headline, one_line

# Cases, as a list or each in full.
CASE_HEADINGS = ("#", "Seen", "Last", "Cause", "What", "Signature")
_SIGHTINGS = 50


def _case_row(record: CaseRecord) -> tuple[str, ...]:
    what = one_line(record.title or record.looked_like)
    return str(record.number), str(record.count), record.last_seen[:10], record.cause, what, record.signature


def _case_facts(record: CaseRecord) -> list[tuple[str, str]]:
    rows = [
        ("Cause", record.cause),
        ("What", one_line(record.title, 300)),
        ("Looked like", one_line(record.looked_like, 300)),
        ("Seen", f"{plural(record.count, 'time')}, {day_text(record.first_seen)} to {day_text(record.last_seen)}"),
        ("Signature", record.signature),
        ("Family", record.family),
    ]
    return [row for row in rows if row[1]]


def _case_note(note: CaseNote) -> tuple[str, str]:
    return ("Solved" if note.solved else "Note"), f"{day_text(note.at)}: {one_line(note.text, 2000)}"


def _sightings(record: CaseRecord) -> list[tuple[str, ...]]:
    return [
        (
            one.at[:16].replace("T", " "),
            one.command,
            one_line(one.package),
            one_line(one.subject),
            one.host_class,
            one.status,
        )
        for one in reversed(record.sightings[-_SIGHTINGS:])
    ]


_SEEN = ("When", "Command", "Package", "Subject", "Host", "How sure")


def _case_sections(found: Sequence[CaseRecord], *, whole: bool) -> list[PageSection]:
    """A list, or each whole."""
    if not whole:
        table = TableBlock(label="Cases", headings=CASE_HEADINGS, rows=text_lines(list(map(_case_row, found))))
        blocks = (table,) if found else (NoteBlock(words="none is recorded"),)
        return [PageSection(id="cases", title=plural(len(found), "case"), blocks=blocks)]
    return [
        PageSection(
            id=f"case{record.number}",
            title=f"Case {record.number}: {record.cause}",
            blocks=(
                Pairs(rows=[*_case_facts(record), *map(_case_note, record.notes)]),
                TableBlock(label="Seen", headings=_SEEN, rows=text_lines(_sightings(record)), titled=True),
            ),
        )
        for record in found
    ]


def cases_markdown(found: Sequence[CaseRecord], *, whole: bool) -> str:
    """``found`` as Markdown: a list, or each whole."""
    parts = [part for one in _case_sections(found, whole=whole) for part in section_parts(one, ROOMS[0])]
    return "\n\n".join(parts) + "\n"


def cases_text(found: Sequence[CaseRecord], *, stream: TextIO, environ: Mapping[str, str], whole: bool) -> str:
    """``found`` for a terminal."""
    from aotidoctor.reports.terminal.terminal_layout import sections_text

    return sections_text(_case_sections(found, whole=whole), stream=stream, environ=environ)


# Sweeps.
SWEEP_SCHEMA = "aotidoctor.sweep/1"
MEANINGS: Mapping[SweepVerdict, str] = {
    SweepVerdict.FAULT: "the contract accepts it, the program computes it, the package fails or is wrong",
    SweepVerdict.UNGUARDED: "the package silently computes wrong numbers or what the program refuses, or it crashes",
    SweepVerdict.REFUSED: "the package raises an error where the program computes a result",
    SweepVerdict.HARMLESS: "outside the contract, but the package is right",
    SweepVerdict.FINE: "contract, package and program agree",
    SweepVerdict.UNKNOWN: "what the package does could not be compared with what the program does",
}
# What a square of the map shows, and its colour.
_SIGNS = dict(zip(SweepVerdict, "!~x+=?", strict=True))
_TONES = dict(zip(SweepVerdict, ("bad", "bad", "unsure", "", "good", "dim"), strict=True))
_HEADINGS = ("Meaning", "Subject", "Change", "Contract", "Package", "With checks", "Program")
_AXES = ("base", "dtype", "stride", "size", "divisibility", "rank", "value", "keys", "none", "pair")
# Below the counts: nobody reads more on a terminal.
_MOST_LISTED = 60


def sweep_headline(found: Sweep) -> Headline:
    """What was tried, and what came of it."""
    counts = _counts(found)
    text = ", ".join(f"{count} {judged.value}" for judged, count in counts.items())
    against = f" against {one_line(found.reference)}" if found.reference is not None else ""
    tried = f"{len(found.rows)} of {found.planned} calls of {one_line(found.package)}{against}: {text or 'none made'}"
    return Headline("SWEEP", tried, _TONES[next(iter(counts), SweepVerdict.REFUSED)] or "good")


def _counts(found: Sweep) -> Mapping[SweepVerdict, int]:
    """Count the rows of each meaning, worst first."""
    seen = Counter(row.judged for row in found.rows)
    return {judged: seen[judged] for judged in SweepVerdict if seen[judged]}


def _row_texts(row: SweepRow) -> tuple[str, ...]:
    """The texts of a row, in the order of the headings."""
    checked = row.checked.value if row.checked is not None else ""
    texts = (
        *((row.says.value, row.cause), (row.package.value, row.detail)),
        *((checked, ""), (row.program.value, row.program_detail)),
    )
    return (
        row.judged.value,
        row.subject,
        row.change or "nothing changed",
        *(": ".join(filter(None, one)) for one in texts),
    )


def sweep_sections(found: Sweep, *, detail: int = 1) -> tuple[PageSection, ...]:
    """The meanings with their counts, the map and the rows, worst first; what agrees only where there is ``detail``."""
    order = {judged: at for at, judged in enumerate(SweepVerdict)}
    rows = sorted(found.rows, key=lambda row: order[row.judged])
    meanings = [(f"{_SIGNS[one]} {one.value}", f"{count}: {MEANINGS[one]}") for one, count in _counts(found).items()]
    wanted = [row for row in rows if detail > 0 or row.judged is not SweepVerdict.FINE]
    listed = wanted if detail > 0 else wanted[:_MOST_LISTED]
    lines = tuple(
        TableLine(tuple(map(Cell, _row_texts(row))), _TONES[row.judged], id=f"R{at}")
        for at, row in enumerate(listed, 1)
    )
    table = TableBlock(label="Calls", headings=_HEADINGS, rows=lines, formats=MARKDOWN + HTML, bare=("Meaning",))
    more = plural(len(wanted) - len(listed), "more row") if len(wanted) > len(listed) else ""
    entries = EntriesBlock(entries=tuple(map(_entry, listed)), more=more, formats=TERMINAL)
    calls = (table, entries) if listed else ()
    reasons = tuple(NoteBlock(words=reason) for reason in found.unasked)
    return (
        PageSection(id="meanings", title="Meanings", blocks=(Pairs(rows=meanings),) if meanings else ()),
        PageSection(id="map", title="Map", blocks=(_map(rows),) if rows else ()),
        PageSection(id="calls", title="Calls", blocks=calls),
        PageSection(id="left", title="Not run", blocks=reasons),
    )


def _entry(row: SweepRow) -> Entry:
    meaning, subject, change, *others = _row_texts(row)
    rows = tuple(zip(_HEADINGS[3:], others, strict=True))
    known = tuple(one for one in rows if one[0] != "Program" or row.program is not Does.UNKNOWN)
    return Entry((Span(meaning, _TONES[row.judged]),), f"{subject}: {change}", known)


def _map(rows: Sequence[SweepRow]) -> TableBlock:
    """A line per subject and a column per axis; each square leads to its row."""
    axes = [axis for axis in _AXES if any(row.axis == axis for row in rows)]
    of: dict[tuple[str, str], list[int]] = {}
    for at, row in enumerate(rows):
        of.setdefault((row.subject, row.axis), []).append(at)

    def cell(places: Sequence[int]) -> Cell:
        squares = (span for at in places for span in (Span(_SIGNS[rows[at].judged], link=f"R{at + 1}"), Span(" ")))
        return Cell(tuple(squares), _TONES[rows[places[0]].judged] if places else "")

    lines = tuple(
        TableLine((Cell(subject), *(cell(of.get((subject, axis), ())) for axis in axes)))
        for subject in dict.fromkeys(row.subject for row in rows)
    )
    return TableBlock(label="Map", headings=("Subject", *axes), rows=lines, look="map", formats=HTML)


def sweep_text(found: Sweep, *, stream: TextIO, environ: Mapping[str, str], detail: int = 0) -> str:
    """Write a sweep for a terminal; rows that agree are only counted unless ``detail`` is above 0."""
    from aotidoctor.reports.terminal.terminal_layout import sections_text

    sections = sweep_sections(found, detail=detail)
    return sections_text(sections, stream=stream, environ=environ, first=sweep_headline(found))


def sweep_markdown(found: Sweep) -> str:
    """The whole table."""
    room = replace(ROOMS[0], rows=max(len(found.rows), 1))
    parts = [part for one in sweep_sections(found) for part in section_parts(one, room)]
    return "\n\n".join((f"# Sweep\n\n{prose(sweep_headline(found).text)}", *parts)) + "\n"


def sweep_page(found: Sweep) -> str:
    """The page."""
    from aotidoctor.reports.html.html_report import sections_page

    known = frozenset(f"R{at}" for at in range(1, len(found.rows) + 1))
    return sections_page("sweep", sweep_headline(found), sweep_sections(found), known)


def sweep_document(found: Sweep) -> dict[str, object]:
    """The JSON document, but for its head."""
    return {
        **pick_fields(found, "package reference torch planned"),
        "counts": {judged.value: count for judged, count in _counts(found).items()},
        **pick_fields(found, "rows unasked interrupted seconds"),
    }
