"""Lay out lines, labelled rows, blocks and tables for a terminal, and show runs and log events in them.

Text of others moves no cursor: whatever is printed to a console with the hook ``NEUTRAL`` loses its control characters
after layout; the colours are rich's own and stay. A page is captured first and then written by us: rich writes to its
file even what it captures (an empty string, at the end), and a full disk answers that with an error.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TextIO, cast, final

from rich import box
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from aotidoctor.model.evidence import shorten
from aotidoctor.reports.page.blocks import (
    TERMINAL,
    Block,
    CommandBlock,
    EntriesBlock,
    Entry,
    Folded,
    NoteBlock,
    OutputBlock,
    PageSection,
    Pairs,
    StepsBlock,
    TableBlock,
    TableLine,
    Words,
    heading_of,
    plain_words,
)
from aotidoctor.reports.text import Headline, neutral, one_line, plain, tail


@dataclass(frozen=True, slots=True)
class _Plain:
    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What ``inner`` is made of, neutral."""
        for part in console.render(self.inner, options):
            yield part if part.control else Segment(neutral(part.text), part.style)


class _Neutral(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wrap each of them so that its text is neutral."""
        return [_Plain(one) for one in renderables]


NEUTRAL = _Neutral()


# What rich may know of a stream, without writing to it.
@final
class _Looks:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        with contextlib.suppress(ValueError, OSError):
            return self._stream.isatty()
        return False

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        return


# Pages as text.
Show = Callable[[Console], None]
# Columns where there is no terminal: no line of code is that long, and no paragraph is one line.
_UNFOLDED = 200
# What COLUMNS may say: in fewer nothing can be read, and rich fills a line to its end.
_NARROWEST, _WIDEST = 20, 1000


def capture_for_stream(show: Show, *, stream: TextIO, environ: Mapping[str, str], unfolded: int = _UNFOLDED) -> str:
    """Capture what ``show`` prints, with the colour, width and character set of ``stream``.

    Where it is no terminal, lines have ``unfolded`` columns: nothing folds at its edge, and what a line holds is found
    by searching for it.
    """
    looks = cast("IO[str]", _Looks(stream))
    columns = environ.get("COLUMNS", "")
    # Some terminals and programs that start others say 0 for "not known".
    environ = {name: value for name, value in environ.items() if name != "COLUMNS"}
    width = (
        min(max(int(columns), _NARROWEST), _WIDEST)
        if columns.isdecimal() and len(columns) < 9 and int(columns)
        else None
    )
    console = Console(
        file=looks,
        width=width or (None if looks.isatty() else unfolded),
        _environ=environ,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        # What it makes of a page for a notebook is not text.
        force_jupyter=False,
    )
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return _capture(show, console).encode(encoding, "replace").decode(encoding)


def capture_plain(show: Show, *, width: int) -> str:
    """Capture what ``show`` prints, without colour."""
    console = Console(
        file=io.StringIO(), _environ={}, width=width, color_system=None, highlight=False, markup=False, emoji=False
    )
    return _capture(show, console)


def _capture(show: Show, console: Console) -> str:
    """Without the blanks with which rich fills its columns."""
    with console.capture() as captured:
        show(console)
    return "\n".join(line.rstrip(" ") for line in captured.get().split("\n"))


# Layout.
_LABEL_WIDTH = 11
TONES = {"good": "bold green", "bad": "bold red", "unsure": "bold yellow", "partial": "bold magenta"}


class Layout:
    """Prints to a console in one style. Texts are literal: rich's markup is never read from them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        console.push_render_hook(NEUTRAL)

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self._console.width

    def blank(self) -> None:
        """An empty line."""
        self._console.print()

    def headline(self, head: Headline) -> None:
        """The verdict on a coloured ground, and its text beside it: of a long one what fits two lines of a terminal."""
        text = shorten(head.text, 2 * (self.width - len(head.word) - 4)) if self._console.is_terminal else head.text
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, overflow="fold")
        grid.add_row(Text(f" {head.word} ", style=f"reverse {TONES[head.tone]}"), Text(text, style="bold"))
        self._console.print(grid)

    def title(self, words: str) -> None:
        """A heading with an empty line before it."""
        self.blank()
        self._console.print(Text(words, style="bold underline" if self._console.color_system else "bold"))
        if not self._console.color_system:
            self._console.print("-" * len(words))

    def line(self, text: Text) -> None:
        """One line, wrapped between words."""
        self._console.print(text)

    def more(self, what: str) -> None:
        """Print a count of what only -v shows."""
        self.line(Text(f" and {what} (-v shows all)", style="dim"))

    def paragraph(self, words: str | Text, *, style: str = "") -> None:
        """Text whose every line is one column in."""
        text = Text(words.strip()) if isinstance(words, str) else words
        text.stylize_before(style)
        text.overflow = "fold"
        self._console.print(Padding(text, (0, 0, 0, 1)))

    def pair(self, left: Text, right: Text) -> None:
        """Two texts side by side; the right one folds inside its column."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, overflow="fold")
        grid.add_row(left, right)
        self._console.print(grid)

    def row(self, label: str, words: str, *, indent: int = 0) -> None:
        """A label and its text in two columns."""
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=_LABEL_WIDTH, no_wrap=True, style="dim")
        grid.add_column(ratio=1, overflow="fold")
        grid.add_row(Text(label), Text(plain(words)))
        self._console.print(Padding(grid, (0, 0, 0, 1 + indent)))

    def code(self, words: str, *, label: str = "") -> None:
        """Text to copy: never wrapped, so that a copied command is whole."""
        lead = label or " " * (_LABEL_WIDTH + 2)
        for line in plain(words).splitlines():
            self._console.print(Text.assemble((lead, "dim"), (line, "bold cyan")), soft_wrap=True)
            lead = " " * len(lead)

    def block(self, words: str) -> None:
        """Print quoted output, indented behind a bar."""
        bar = "|" if self._console.options.ascii_only else "│"
        width = max(self._console.width - 3, 20)
        for line in plain(words).rstrip("\n").expandtabs(4).split("\n"):
            for start in range(0, max(len(line), 1), width):
                self._console.print(Text.assemble((f" {bar} ", "dim"), line[start : start + width]), soft_wrap=True)

    def table(
        self,
        headings: Sequence[str],
        rows: Iterable[Sequence[str | Text]],
        *,
        whole: Collection[str] = (),
        ratios: Mapping[str, int] | None = None,
    ) -> None:
        """A table, one column in. Text folds instead of being cut, except in the columns that are kept ``whole``."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, show_header=any(headings))
        for heading in headings:
            table.add_column(heading, overflow="fold", no_wrap=heading in whole, ratio=(ratios or {}).get(heading))
        for row in rows:
            table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
        self._console.print(Padding(table, (0, 0, 0, 1)))


# Blocks.
LOOKS = {"bad": "red", "unsure": "yellow", "good": "green", "partial": "magenta", "dim": "dim", "bold": "bold"}
"""By tone and look."""
# Below this width the last columns of a wide table would push the others together.
_WIDE = 110
_LONGEST = 4000


def _words(words: Words, tone: str = "") -> Text:
    """Text with its looks, on one line."""
    if isinstance(words, str):
        return Text(one_line(words, _LONGEST), style=LOOKS.get(tone, ""))
    text = Text(style=LOOKS.get(tone, ""))
    for span in words:
        text.append(shorten(plain(span.text).replace("\n", " "), _LONGEST), LOOKS.get(span.look, ""))
    return text


def show_section(section: PageSection, out: Layout) -> None:
    """The blocks under the title of the section, or each under its own."""
    title = section.title
    if section.blocks and not title:
        out.blank()
    for block in section.blocks:
        if TERMINAL not in block.formats:
            continue
        own = heading_of(block)
        if own or title:
            out.title(one_line(own or title))
        title = ""
        show_block(block, out)


def show_block(block: Block, out: Layout, indent: int = 0) -> None:
    """Print ``block`` without a heading; what is folded elsewhere is indented."""
    match block:
        case TableBlock():
            _show_table(block, out)
        case EntriesBlock(table=TableBlock() as table) if out.width >= _WIDE:
            _show_table(table, out)
        case EntriesBlock():
            for entry in block.entries:
                _show_entry(entry, out)
            if block.more:
                out.more(block.more)
        case Folded():
            out.line(Text(" ").append(_words(block.summary)))
            for one in block.blocks:
                if TERMINAL in one.formats:
                    show_block(one, out, indent=3)
        case Pairs():
            for label, words in block.rows:
                out.row(label, one_line(plain_words(words), _LONGEST), indent=indent)
        case _:
            _show_text(block, out)


def _show_text(block: Block, out: Layout) -> None:
    match block:
        case OutputBlock():
            if block.title:
                out.line(Text(" ").append(_words(block.title, "dim")))
            out.block(tail(block.text, block.room))
        case CommandBlock():
            out.code(block.text)
        case NoteBlock():
            out.paragraph(_words(block.words), style=LOOKS.get(block.tone, ""))
        case StepsBlock():
            for number, step in enumerate(block.items, block.first):
                out.pair(Text(f" {number:>2}."), _words(step))


def _show_entry(entry: Entry, out: Layout) -> None:
    out.pair(Text(" ").append(_words(entry.title)), _words(entry.aside))
    for label, text in entry.rows:
        if text:
            out.row(label, one_line(text), indent=4)


def _show_table(block: TableBlock, out: Layout) -> None:
    table = block.of_format(TERMINAL)
    kept = [at for at, heading in enumerate(table.headings) if out.width >= _WIDE or heading not in table.wide]
    if table.sparse:
        kept = [at for at in kept if any(row.cells[at].words for row in table.rows)]
    table = table.of_columns(kept)
    marked = table.marked and not (table.sparse and not any(row.mark for row in table.rows))
    headings = (*(("",) if marked else ()), *table.headings)
    rows = (
        (
            *((Text(row.mark or " ", style=_style(row)),) if marked else ()),
            *(_words(cell.words, cell.tone or row.tone) for cell in row.cells),
        )
        for row in table.rows
    )
    out.table(headings if table.headed else [""] * len(headings), rows, whole=table.whole, ratios=table.ratios)
    if table.more:
        out.more(table.more)


def _style(row: TableLine) -> str:
    """Of a mark: that of the row, or of the first cell that has one."""
    return LOOKS.get(row.tone or next((cell.tone for cell in row.cells if cell.tone), ""), "")


def sections_text(
    sections: Iterable[PageSection],
    *,
    stream: TextIO,
    environ: Mapping[str, str],
    first: Headline | None = None,
    unfolded: int = _UNFOLDED,
) -> str:
    """Sections that belong to no report under their headline, as ``stream`` can show them."""

    def show(console: Console) -> None:
        out = Layout(console)
        if first is not None:
            out.headline(first)
        for section in sections:
            show_section(section, out)

    return capture_for_stream(show, stream=stream, environ=environ, unfolded=unfolded).lstrip("\n")


# A page of Markdown, for `explain`.
_WIDEST_PAGE, _UNFOLDED_PAGE = 100, 80


def markdown_page_text(markdown: str, *, stream: TextIO, environ: Mapping[str, str]) -> str:
    """``markdown`` as ``stream`` can show it, in lines that are not too long to read."""
    # It takes longer to import than all of rich that a report needs.
    from rich.markdown import Markdown

    def show(console: Console) -> None:
        console.print(Markdown(markdown, code_theme="ansi_dark"), width=min(console.width, _WIDEST_PAGE))

    return capture_for_stream(show, stream=stream, environ=environ, unfolded=_UNFOLDED_PAGE)
