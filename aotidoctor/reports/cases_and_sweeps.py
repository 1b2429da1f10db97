"""Write the cases of a desk and the rows of a sweep as text, Markdown and, for sweeps, an HTML page.

The page of a sweep has a map, with a line per subject and a column per axis, and the table below it. It loads nothing
and has no script: each square shows its row when the pointer rests on it, and links to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TextIO

from aotidoctor.model.evidence import plural
from aotidoctor.model.fleet import Does, Sweep, SweepRow, SweepVerdict
from aotidoctor.model.report import CaseNote, CaseRecord
from aotidoctor.reports.json.json_report import pick_fields
from aotidoctor.reports.markdown import ROOMS, cell, prose, section_parts, table
from aotidoctor.reports.page.blocks import NoteBlock, PageSection, Pairs, TableBlock, text_lines
from aotidoctor.reports.page.report_view import day_text
from aotidoctor.reports.text import one_line, plain

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


# A sweep as text and Markdown.
SWEEP_SCHEMA = "aotidoctor.sweep/1"
MEANINGS: Mapping[SweepVerdict, str] = {
    SweepVerdict.FAULT: "the contract accepts it, the program computes it, the package fails or is wrong",
    SweepVerdict.UNGUARDED: "the package silently computes wrong numbers or what the program refuses, or it crashes",
    SweepVerdict.REFUSED: "the package raises an error where the program computes a result",
    SweepVerdict.HARMLESS: "outside the contract, but the package is right",
    SweepVerdict.FINE: "contract, package and program agree",
    SweepVerdict.UNKNOWN: "what the package does could not be compared with what the program does",
}
_HEADINGS = ("Meaning", "Subject", "Change", "Contract", "Package", "With checks", "Program")
# Below the table: nobody reads more on a terminal.
_MOST_LISTED = 60


def sweep_counts(found: Sweep) -> Mapping[SweepVerdict, int]:
    """Count the rows of each meaning, worst first."""
    seen = Counter(row.judged for row in found.rows)
    return {judged: seen[judged] for judged in SweepVerdict if seen[judged]}


def sweep_headline(found: Sweep) -> str:
    """One sentence: what was tried, and what came of it."""
    text = ", ".join(f"{count} {judged.value}" for judged, count in sweep_counts(found).items())
    against = f" against {one_line(found.reference)}" if found.reference is not None else ""
    return f"{len(found.rows)} of {found.planned} calls of {one_line(found.package)}{against}: {text or 'none made'}"


def sweep_cells(row: SweepRow) -> tuple[str, ...]:
    """The texts of a row, in the order of the headings."""
    says = f"{row.says.value}: {row.cause}" if row.cause is not None else row.says.value
    return (
        row.judged.value,
        row.subject,
        row.change or "nothing changed",
        says,
        _behaviour_text(row.package, row.detail),
        row.checked.value if row.checked is not None else "",
        _behaviour_text(row.program, row.program_detail),
    )


def _behaviour_text(does: Does, detail: str) -> str:
    return f"{does.value}: {detail}" if detail else does.value


def sort_rows(rows: Sequence[SweepRow]) -> list[SweepRow]:
    """Sort rows worst first; rows of one meaning keep the order of the calls."""
    rank = {judged: at for at, judged in enumerate(SweepVerdict)}
    return sorted(rows, key=lambda row: rank[row.judged])


def sweep_text(found: Sweep, *, detail: int = 0) -> str:
    """Write a sweep for a terminal; rows that agree are only counted unless ``detail`` is above 0."""
    rows = [row for row in sort_rows(found.rows) if detail > 0 or row.judged is not SweepVerdict.FINE]
    listed = rows if detail > 0 else rows[:_MOST_LISTED]
    lines = [f" SWEEP  {sweep_headline(found)}", ""]
    for judged in dict.fromkeys(row.judged for row in listed):
        lines += [f" {judged.value.upper()}: {MEANINGS[judged]}"]
        for row in (row for row in listed if row.judged is judged):
            _, subject, change, says, package, checked, program = sweep_cells(row)
            known = f"; program: {one_line(program)}" if row.program is not Does.UNKNOWN else ""
            with_checks = f"; with checks: {checked}" if checked else ""
            lines.append(f"   {one_line(subject)}: {one_line(change)}")
            lines.append(f"      contract {says}; package: {one_line(package)}{with_checks}{known}")
        lines.append("")
    if len(rows) > len(listed):
        lines.append(f" {plural(len(rows) - len(listed), 'more row')}: -v, or --format md, json or html")
    lines += [f" Not run: {one_line(reason)}" for reason in found.unasked]
    return "\n".join(lines).rstrip() + "\n"


def sweep_markdown(found: Sweep) -> str:
    """The whole table."""
    lines = ["# Sweep", "", prose(sweep_headline(found)), ""]
    lines += [f"- **{judged.value}** ({count}): {MEANINGS[judged]}" for judged, count in sweep_counts(found).items()]
    lines += ["", table(_HEADINGS, [[cell(one) for one in sweep_cells(row)] for row in sort_rows(found.rows)]), ""]
    lines += [f"Not run: {prose(reason)}" for reason in found.unasked]
    return "\n".join(lines).rstrip() + "\n"


def sweep_document(found: Sweep) -> dict[str, object]:
    """The JSON document, but for its head."""
    return {
        **pick_fields(found, "package reference torch planned"),
        "counts": {judged.value: count for judged, count in sweep_counts(found).items()},
        **pick_fields(found, "rows unasked interrupted seconds"),
    }


# A sweep as a page.
AXES = ("base", "dtype", "stride", "size", "divisibility", "rank", "value", "keys", "none", "pair")
_SIGNS = {
    SweepVerdict.FAULT: "!",
    SweepVerdict.UNGUARDED: "~",
    SweepVerdict.REFUSED: "x",
    SweepVerdict.HARMLESS: "+",
    SweepVerdict.FINE: "=",
    SweepVerdict.UNKNOWN: "?",
}
_STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .5rem; text-align: left; vertical-align: top; }
td.words { font-family: ui-monospace, monospace; font-size: .85em; overflow-wrap: anywhere; }
a.square { display: inline-block; width: 1.15em; height: 1.15em; line-height: 1.15em; margin: 1px; text-align: center;
  border-radius: 3px; color: #000; text-decoration: none; font-family: ui-monospace, monospace; font-size: .8em; }
.fault { background: #e5484d; } .unguarded { background: #f5a524; } .refused { background: #b18cf0; }
.harmless { background: #7cc4f0; } .fine { background: #7bc47f; } .unknown { background: #bbb; }
:target td { outline: 2px solid #f5a524; }
"""


def sweep_page(found: Sweep) -> str:
    """The page."""
    rows = sort_rows(found.rows)
    numbers = {id(row): at for at, row in enumerate(rows)}
    axes = [axis for axis in AXES if any(row.axis == axis for row in rows)]
    subjects = list(dict.fromkeys(row.subject for row in found.rows))
    legend = "".join(
        f"<li>{_square(judged)} <b>{judged.value}</b> ({count}): {escape(MEANINGS[judged])}</li>"
        for judged, count in sweep_counts(found).items()
    )
    lines = [
        f"<tr><th>{_safe(subject, 60)}</th>"
        + "".join(f"<td>{_cell(found.rows, subject, axis, numbers)}</td>" for axis in axes)
        + "</tr>"
        for subject in subjects
    ]
    body = []
    for at, row in enumerate(rows):
        meaning, *rest = sweep_cells(row)
        texts = "".join(f'<td class="words">{_safe(one, 240)}</td>' for one in rest)
        body.append(f'<tr id="r{at}"><td>{_square(row.judged)} {meaning}</td>{texts}</tr>')
    unasked = "".join(f"<p>Not run: {_safe(reason, 300)}</p>" for reason in found.unasked)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Sweep</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>Sweep</h1>\n<p>{_safe(sweep_headline(found), 600)}</p>\n"
        f"<ul>{legend}</ul>\n<table><tr><th>Subject</th>{''.join(f'<th>{axis}</th>' for axis in axes)}</tr>\n"
        + "\n".join(lines)
        + "</table>\n<table><tr><th>Meaning</th><th>Subject</th><th>Change</th><th>Contract</th><th>Package</th>"
        "<th>With checks</th><th>Program</th></tr>\n" + "\n".join(body) + f"</table>\n{unasked}\n</body></html>\n"
    )


def _cell(rows: tuple[SweepRow, ...], subject: str, axis: str, numbers: dict[int, int]) -> str:
    found = [row for row in rows if (row.subject, row.axis) == (subject, axis)]
    return "".join(
        _square(
            row.judged,
            f"#r{numbers[id(row)]}",
            escape(one_line(" | ".join(one for one in sweep_cells(row) if one), 400), quote=True),
        )
        for row in found
    )


def _square(judged: SweepVerdict, target: str = "", title: str = "") -> str:
    link = f' href="{target}"' if target else ""
    text = f' title="{title}"' if title else ""
    return f'<a class="square {judged.name.lower()}"{link}{text}>{_SIGNS[judged]}</a>'


def _safe(text: str, limit: int) -> str:
    return escape(one_line(plain(text), limit), quote=True)
