"""What a page is made of: sections of blocks. ``templates/report.html.jinja`` knows how each block looks.

Bodies are ``Markup``: text of others has been cleaned and escaped by ``html_text`` before it gets here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from markupsafe import Markup

from aotidoctor.model.record import record
from aotidoctor.reports.html import text as html_text

# Rows.
LONG = 60


@record
class Cell:
    """One cell. ``tone`` colours it (``bad``, ``unsure``, ``good``, ``dim``); ``look`` is a class of its style."""

    body: Markup
    tone: str = ""
    look: str = ""
    span: int = 1
    heads: bool = False


@record
class Line:
    """One row. ``id`` is its anchor, where it is evidence."""

    cells: tuple[Cell, ...]
    tone: str = ""
    id: str = ""


@record
class Table:
    """A table. ``groups`` are headings over several columns. ``stacks``: rows become cards where it is narrow.

    ``titled``: its label can be seen; else it is there for readers of screens.
    """

    kind: ClassVar[str] = "table"
    label: str
    headings: tuple[str, ...]
    rows: tuple[Line, ...]
    groups: tuple[tuple[str, int], ...] = ()
    stacks: bool = False
    titled: bool = False
    look: str = ""

    @property
    def is_long(self) -> bool:
        """Whether nobody reads it from top to bottom: it is folded, and can be filtered."""
        return len(self.rows) > LONG


@record
class Pairs:
    """Labels with what they stand for."""

    kind: ClassVar[str] = "pairs"
    rows: tuple[tuple[str, Markup], ...]


@record
class Printed:
    """Text as it was printed; ``before`` counts the characters that were cut off at its beginning."""

    kind: ClassVar[str] = "printed"
    title: Markup
    body: Markup
    before: int = 0


@record
class Command:
    """Text to copy: a click selects all of it."""

    kind: ClassVar[str] = "command"
    text: str


@record
class Figure:
    """A drawing with its caption; ``text`` says the same without one."""

    kind: ClassVar[str] = "figure"
    svg: Markup
    text: str
    caption: Markup


@record
class Note:
    """A paragraph."""

    kind: ClassVar[str] = "note"
    body: Markup
    tone: str = ""


@record
class Steps:
    """A list in an order."""

    kind: ClassVar[str] = "steps"
    items: tuple[Markup, ...]


@record
class Folded:
    """Blocks that are opened when somebody wants them, and on paper."""

    kind: ClassVar[str] = "folded"
    summary: Markup
    blocks: tuple[Block, ...]
    id: str = ""
    tone: str = ""


Block = Table | Pairs | Printed | Command | Figure | Note | Steps | Folded


@record
class Section:
    """A part of the page with a heading that the navigation lists; shown only if it has blocks."""

    id: str
    title: str
    blocks: tuple[Block, ...]


def folded(section: Section) -> Section:
    """The section with its long tables folded."""
    return Section(id=section.id, title=section.title, blocks=tuple(map(_folded, section.blocks)))


def _folded(block: Block) -> Block:
    if not isinstance(block, Table) or not block.is_long:
        return block
    return Folded(summary=html_text.line(f"{block.label}: {len(block.rows):,} rows"), blocks=(block,))


def has_long(blocks: Sequence[Block]) -> bool:
    """Whether there is a long table, folded or not."""
    return any(
        (isinstance(block, Table) and block.is_long) or (isinstance(block, Folded) and has_long(block.blocks))
        for block in blocks
    )


def cell(body: str | Markup, *, tone: str = "", look: str = "", span: int = 1, heads: bool = False) -> Cell:
    """A cell of text, which is put on one line, or of markup."""
    shown = body if isinstance(body, Markup) else html_text.line(body)
    return Cell(body=shown, tone=tone, look=look, span=span, heads=heads)


def mono(text: str) -> Cell:
    """A cell of code."""
    return cell(html_text.code(text))


def texts(rows: Sequence[Sequence[str]], *, tones: Sequence[str] = ()) -> tuple[Line, ...]:
    """Rows of plain text, with a tone for each where there are any."""
    given = [*tones, *[""] * (len(rows) - len(tones))]
    return tuple(
        Line(cells=tuple(cell(text, heads=at == 0) for at, text in enumerate(row)), tone=tone)
        for row, tone in zip(rows, given, strict=True)
    )


def printed(title: str | Markup, text: str, room: int) -> tuple[Block, ...]:
    """The end of ``text`` as a block; nothing for nothing."""
    shown, before = html_text.ending(text, room)
    if not shown.strip():
        return ()
    heading = title if isinstance(title, Markup) else html_text.line(title)
    return (Printed(title=heading, body=html_text.esc(shown), before=before),)


def cut(what: str, rows: Sequence[Line], room: int) -> tuple[tuple[Line, ...], tuple[Block, ...]]:
    """The first ``room`` rows, and a note that counts the others."""
    more = len(rows) - room
    note = (Note(body=html_text.line(f"and {more:,} more {what}"), tone="dim"),) if more > 0 else ()
    return tuple(rows[:room]), note
