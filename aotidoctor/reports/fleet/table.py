"""The items as CSV for spreadsheets (RFC 4180), in which no cell is a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields

from aotidoctor.model.clusters import ItemRow
from aotidoctor.reports.text import one_line

# What a spreadsheet takes for a formula, also after blanks, and in the wide letters of East Asia.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20|%]")
_LONGEST = 2000
_HEADINGS = tuple(item.name for item in fields(ItemRow))


def cell(value: str | float) -> str:
    """``value`` as the text of a cell: on one line, and with an apostrophe before what would be calculated."""
    if not isinstance(value, str):
        return f"{value:g}"
    line = one_line(value, _LONGEST)
    return f"'{line}" if _FORMULA.match(line) else line


def render(rows: Iterable[ItemRow]) -> Iterator[str]:
    """The lines of the document, the headings first."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(_HEADINGS)
    for row in rows:
        writer.writerow([cell(getattr(row, name)) for name in _HEADINGS])
        if out.tell() > 1 << 16:
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()
