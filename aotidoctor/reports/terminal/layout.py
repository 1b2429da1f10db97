"""Lines, labelled rows, blocks and tables for a terminal; the only place that knows rich's layout classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from aotidoctor.reports.terminal.neutral import NEUTRAL
from aotidoctor.reports.text import plain
from aotidoctor.reports.tones import Headline

_LABEL_WIDTH = 11
TONES = {"good": "bold green", "bad": "bold red", "unsure": "bold yellow", "partial": "bold magenta"}
# By severity, and by the mark of a row.
STYLES = {"": "", "info": "dim", "warn": "yellow", "error": "red"}


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
        """The verdict on a coloured ground, and its text beside it."""
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, overflow="fold")
        grid.add_row(Text(f" {head.word} ", style=f"reverse {TONES[head.tone]}"), Text(head.text, style="bold"))
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
        """What else there is, which -v shows."""
        self.line(Text(f" and {what} (-v shows all)", style="dim"))

    def paragraph(self, words: str, *, style: str = "") -> None:
        """Text whose every line is one column in."""
        self._console.print(Padding(Text(words.strip(), style=style, overflow="fold"), (0, 0, 0, 1)))

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
        """Printed text of somebody else, indented behind a bar."""
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
