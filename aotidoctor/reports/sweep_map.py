"""A sweep as a page: a map with a line per subject and a column per axis, and the table below it.

One file, nothing loaded, no script: each square shows its row when the pointer rests on it, and leads to it.
"""

from __future__ import annotations

from html import escape

from aotidoctor.model.sweep import Judged, Sweep, SweepRow
from aotidoctor.reports.sweep_view import MEANINGS, cells, counts, headline, ordered
from aotidoctor.reports.text import one_line, plain

AXES = ("base", "dtype", "stride", "size", "divisibility", "rank", "value", "keys", "none", "pair")
_SIGNS = {
    Judged.FAULT: "!",
    Judged.UNGUARDED: "~",
    Judged.REFUSED: "x",
    Judged.HARMLESS: "+",
    Judged.FINE: "=",
    Judged.UNKNOWN: "?",
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


def html(found: Sweep) -> str:
    """The page."""
    rows = ordered(found.rows)
    numbers = {id(row): at for at, row in enumerate(rows)}
    axes = [axis for axis in AXES if any(row.axis == axis for row in rows)]
    subjects = list(dict.fromkeys(row.subject for row in found.rows))
    legend = "".join(
        f"<li>{_square(judged)} <b>{judged.value}</b> ({count}): {escape(MEANINGS[judged])}</li>"
        for judged, count in counts(found).items()
    )
    lines = [
        f"<tr><th>{_safe(subject, 60)}</th>"
        + "".join(f"<td>{_cell(found.rows, subject, axis, numbers)}</td>" for axis in axes)
        + "</tr>"
        for subject in subjects
    ]
    body = [_row(row, at) for at, row in enumerate(rows)]
    unasked = "".join(f"<p>Not run: {_safe(reason, 300)}</p>" for reason in found.unasked)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Sweep</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>Sweep</h1>\n<p>{_safe(headline(found), 600)}</p>\n"
        f"<ul>{legend}</ul>\n<table><tr><th>Subject</th>{''.join(f'<th>{axis}</th>' for axis in axes)}</tr>\n"
        + "\n".join(lines)
        + "</table>\n<table><tr><th>Meaning</th><th>Subject</th><th>Change</th><th>Contract</th><th>Package</th>"
        "<th>With checks</th><th>Program</th></tr>\n" + "\n".join(body) + f"</table>\n{unasked}\n</body></html>\n"
    )


def _cell(rows: tuple[SweepRow, ...], subject: str, axis: str, numbers: dict[int, int]) -> str:
    found = [row for row in rows if (row.subject, row.axis) == (subject, axis)]
    return "".join(_square(row.judged, f"#r{numbers[id(row)]}", _title(row)) for row in found)


def _square(judged: Judged, target: str = "", title: str = "") -> str:
    link = f' href="{target}"' if target else ""
    shown = f' title="{title}"' if title else ""
    return f'<a class="square {judged.name.lower()}"{link}{shown}>{_SIGNS[judged]}</a>'


def _title(row: SweepRow) -> str:
    return escape(one_line(" | ".join(one for one in cells(row) if one), 400), quote=True)


def _row(row: SweepRow, at: int) -> str:
    meaning, *rest = cells(row)
    told = "".join(f'<td class="words">{_safe(one, 240)}</td>' for one in rest)
    return f'<tr id="r{at}"><td>{_square(row.judged)} {meaning}</td>{told}</tr>'


def _safe(text: str, limit: int) -> str:
    return escape(one_line(plain(text), limit), quote=True)
