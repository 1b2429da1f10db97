"""Lay out lines, labelled rows, blocks and tables for a terminal, and show runs and log events in them.

Text of others moves no cursor: whatever is printed to a console with the hook ``NEUTRAL`` loses its control characters
after layout; the colours are rich's own and stay. A page is captured first and then written by us: rich writes to its
file even what it captures (an empty string, at the end), and a full disk answers that with an error.
"""

from __future__ import annotations

import contextlib
import io
import re
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
from aotidoctor.model.record import record
from aotidoctor.model.report import NOT_CONFINED, LogReading, Report
from aotidoctor.model.run import Outcome
from aotidoctor.reports import run_view
from aotidoctor.reports.text import Headline, head, neutral, one_line, plain, seconds, tail


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
def rich_settings(stream: TextIO) -> IO[str]:
    """A file with the encoding, the width and the terminal of ``stream``, which takes everything and keeps nothing."""
    return cast("IO[str]", _Looks(stream))


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
    looks = rich_settings(stream)
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


# Titled tables that belong to no report.
@record
class TitledPart:
    """A title with labelled lines and a table under it; both may be empty."""

    title: str
    labelled: tuple[tuple[str, str], ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[Sequence[str], ...] = ()


def tables_text(parts: Sequence[TitledPart], *, stream: TextIO, environ: Mapping[str, str]) -> str:
    """``parts`` as ``stream`` can show them."""
    return capture_for_stream(lambda console: _parts(parts, Layout(console)), stream=stream, environ=environ).lstrip(
        "\n"
    )


def _parts(parts: Sequence[TitledPart], out: Layout) -> None:
    for part in parts:
        out.title(part.title)
        for label, words in part.labelled:
            out.row(label, words)
        if part.rows:
            out.table(part.headings, part.rows)


# The runs of a report, and what the telling ones printed.
_NOISE = re.compile(
    r"^frame #\d+: |^<omitting python frames>|[/\\]aotidoctor[/\\]worker[/\\]|^Extension modules: |^\s*$"
)


def show_runs(report: Report, out: Layout, detail: int) -> None:
    """A table of the runs; then what failed printed, or with -v what each did."""
    if not report.runs:
        return
    out.title("Runs")
    rows = []
    for outcome in report.runs:
        effect = run_view.took_effect(outcome)
        if effect and outcome.took_effect_why:
            effect += f": {one_line(outcome.took_effect_why)}"
        style = STYLES["error"] if run_view.outcome_failed(outcome) else ""
        name = one_line(outcome.request.probe)
        ended = Text(run_view.run_ending(outcome), style=style)
        rows.append((outcome.id, name, ended, outcome.stage, seconds(outcome.seconds), effect))
    out.table(("", "Probe", "Ended", "In", "Time", "Setting took effect"), rows)
    if NOT_CONFINED in report.extra:
        out.paragraph(f"Confined: all but {one_line(report.extra[NOT_CONFINED])}")
    failed = run_view.first_failed(report.runs)
    for outcome in report.runs if detail > 0 else [failed] if failed else []:
        # What a child said: the start of its exception or the end of its output, or all that was kept.
        parts = _last_words(outcome) if detail <= 0 else _all_words(outcome, (4000, 20000)[detail > 1])
        for name, content in parts:
            if content.strip():
                out.line(Text(f" {outcome.id} {name}", style="dim"))
                out.block(content)


def _last_words(outcome: Outcome) -> list[tuple[str, str]]:
    """The telling part: no frames of C++, of this program's own worker, no list of extension modules."""
    error = outcome.error
    printed = (outcome.stderr_tail if error is None else error.message).splitlines()
    text = "\n".join(line for line in printed if not _NOISE.search(line))
    return [("stderr", tail(text, 400))] if error is None else [("raised", head(text, 6))]


def _all_words(outcome: Outcome, room: int) -> list[tuple[str, str]]:
    changes = run_view.env_text(outcome.request.env)
    error = outcome.error
    return [
        ("was for", outcome.request.purpose),
        ("command", f"{changes} {' '.join(outcome.argv)}".strip()),
        ("raised", tail(error.traceback or error.message, room) if error is not None else ""),
        ("stdout", tail(outcome.stdout_tail, room)),
        ("stderr", tail(outcome.stderr_tail, room)),
    ]


# The events of a log.
def show_log(log: LogReading, out: Layout, *, detail: int) -> None:
    """Print the failures with their lines, and what else the log states."""
    rows, hidden = run_view.log_rows(log, whole=detail > 0)
    facts = run_view.log_facts(log)
    if not rows and not facts:
        return
    out.title("Log")
    if rows:
        cells = ((Text(row.line, style=STYLES[row.tone]), one_line(row.message), row.what) for row in rows)
        line, found, what = run_view.LOG_HEADINGS
        out.table(run_view.LOG_HEADINGS, cells, whole=(line,), ratios={found: 3, what: 2})
    if hidden:
        out.more(f"{hidden} more")
    for label, text in facts:
        out.row(label, text)
