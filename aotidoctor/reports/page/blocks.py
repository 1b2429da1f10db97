"""Define the blocks of a page: tables, labelled lines, output, commands, notes, lists and folded parts.

A section is written once, as blocks; ``terminal_layout``, ``markdown`` and ``html_blocks`` know how each of them looks.
Texts are those of others and raw: each format cleans, cuts and escapes them. Which evidence or run a text mentions is
seen by the format that has links.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from aotidoctor.model.record import record

TERMINAL, MARKDOWN, HTML = "t", "m", "h"
# By severity.
TONES = {"": "", "info": "dim", "warn": "unsure", "error": "bad"}


@record(kw_only=False)
class Span:
    """A piece of text. ``look`` is a tone, ``code``, ``dim``, ``bold``, ``wrong``, ``tag`` or ``bar`` (of HTML alone).

    ``link`` is the id of a row or folded part. Of a bar the text is its place in percent: begin, width.
    """

    text: str
    look: str = ""
    link: str = ""


Words = str | tuple[Span, ...]


def plain_words(words: Words) -> str:
    """The text without its looks."""
    return words if isinstance(words, str) else "".join(span.text for span in words if span.look != "bar")


def code_words(text: str) -> Words:
    """``text`` as code; nothing for nothing."""
    return (Span(text, "code"),) if text else ""


@record(kw_only=False)
class Cell:
    """One cell. ``tone`` colours it (``bad``, ``unsure``, ``good``, ``dim``); ``look`` is a class of its style."""

    words: Words
    tone: str = ""
    look: str = ""
    span: int = 1


@record(kw_only=False)
class TableLine:
    """One row. ``mark`` is the sign of its tone where there are no colours; ``id`` is its anchor."""

    cells: tuple[Cell, ...]
    tone: str = ""
    mark: str = ""
    id: str = ""


@record
class Block:
    """A part of a section. ``formats`` are those that show it."""

    formats: str = TERMINAL + MARKDOWN + HTML


@record
class TableBlock(Block):
    """A table. ``titled``: its label is a heading; else it is there for readers of screens.

    ``headed``: a terminal shows the headings. ``groups`` are headings over several columns. ``whole`` columns never
    fold, ``ratios`` share the rest, ``wide`` ones need a wide terminal, ``sparse``: a terminal leaves empty columns
    out, ``columns_of`` limits a column to formats. ``bare`` columns hold words of ours. ``room`` cells of Markdown's
    budget are what a cell may take; ``folded``: Markdown folds it. ``more`` is what only a higher detail shows;
    ``noun`` counts what has no room. ``heads`` is the column that names a row.
    """

    label: str
    headings: tuple[str, ...]
    rows: tuple[TableLine, ...]
    titled: bool = False
    headed: bool = True
    groups: tuple[tuple[str, int], ...] = ()
    marked: bool = False
    sparse: bool = False
    folded: bool = False
    whole: Collection[str] = ()
    ratios: Mapping[str, int] | None = None
    wide: Collection[str] = ()
    bare: Collection[str] = ()
    columns_of: Mapping[str, str] | None = None
    room: int = 1
    look: str = ""
    heads: int = 0
    more: str = ""
    noun: str = "more"

    def of_format(self, name: str) -> TableBlock:
        """The table as ``name`` shows it: with its columns alone, those that it has for others left out."""
        kept = [at for at, one in enumerate(self.headings) if name in (self.columns_of or {}).get(one, name)]
        return self.of_columns(kept)

    def of_columns(self, kept: Sequence[int]) -> TableBlock:
        """The table with the columns ``kept``."""
        if len(kept) == len(self.headings):
            return self
        rows = tuple(replace(row, cells=tuple(row.cells[at] for at in kept)) for row in self.rows)
        return replace(self, headings=tuple(self.headings[at] for at in kept), rows=rows, columns_of=None)


@record
class Pairs(Block):
    """Labels with what they stand for; an empty label goes on with the row before it."""

    rows: Sequence[tuple[str, Words]]
    label: str = ""


@record
class OutputBlock(Block):
    """Text as it was printed, of which the last ``room`` characters are shown; ``marks``: ``►`` begins what counts."""

    title: Words
    text: str
    room: int = 8000
    language: str = "text"
    marks: bool = False


@record
class CommandBlock(Block):
    """Text to copy: a click selects all of it."""

    text: str


@record
class DrawingBlock(Block):
    """A drawing of the numbers of a report: ``values`` or ``errors``. Only HTML has it."""

    of: str


@record
class NoteBlock(Block):
    """A paragraph."""

    words: Words
    tone: str = ""
    label: str = ""


@record
class StepsBlock(Block):
    """A list in an order, from ``first`` on."""

    items: Sequence[str]
    first: int = 1


@record(kw_only=False)
class Entry:
    """A title, what stands beside it, and labelled lines below."""

    title: Words
    aside: Words
    rows: tuple[tuple[str, str], ...]


@record
class EntriesBlock(Block):
    """Entries for a terminal where a table would fold every cell; where it is wide, and in Markdown, ``table``."""

    entries: tuple[Entry, ...]
    table: TableBlock | None = None
    more: str = ""


@record
class Folded(Block):
    """Blocks that are folded on screen and open on paper; a terminal shows them where it has any."""

    summary: Words
    blocks: tuple[Block, ...]
    id: str = ""


@record
class PageSection:
    """A part of the page with a heading, shown only if it has blocks.

    Where a table or pairs have a heading of their own, terminal and Markdown show that one instead.
    """

    id: str
    title: str
    blocks: tuple[Block, ...]


def heading_of(block: Block) -> str:
    """The heading that a block has of its own; empty where it has none."""
    if isinstance(block, (Pairs, NoteBlock)) or (isinstance(block, TableBlock) and block.titled):
        return block.label
    return ""


def text_lines(rows: Sequence[Sequence[str]], *, tones: Sequence[str] = ()) -> tuple[TableLine, ...]:
    """Rows of plain text, with a tone for each where there are any."""
    given = [*tones, *[""] * (len(rows) - len(tones))]
    return tuple(TableLine(tuple(map(Cell, row)), tone) for row, tone in zip(rows, given, strict=True))


def facts_table(
    label: str,
    rows: Sequence[tuple[str, str]],
    *,
    most: int | None = None,
    formats: str = TERMINAL + MARKDOWN + HTML,
    folded: bool = False,
    named: bool = False,
) -> tuple[TableBlock, ...]:
    """Labels and what they stand for under a heading of their own; nothing for nothing. ``most`` of them are listed.

    ``named``: the labels are names of the model's, not words of ours.
    """
    if not rows:
        return ()
    lines = tuple(
        TableLine((Cell(code_words(name) if named else name, "dim"), Cell(text))) for name, text in rows[:most]
    )
    left = f"{len(rows) - len(lines)} more" if len(lines) < len(rows) else ""
    return (
        TableBlock(
            label=label,
            headings=("Name", "What it is"),
            rows=lines,
            titled=True,
            headed=False,
            bare=() if named else ("Name",),
            more=left,
            formats=formats,
            folded=folded,
        ),
    )
