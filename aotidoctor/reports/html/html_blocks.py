"""Build the parts of an HTML page: escaped text, links, sections of blocks, and the template environment.

``templates/report.html.jinja`` knows how each block looks. Everything that reaches a page goes through ``clean``, also
where the template escapes by itself: control characters, bidirectional overrides and code points that HTML does not
allow never get there. Bodies of blocks are ``Markup``: text of others was cleaned and escaped before.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from aotidoctor.model.record import record
from aotidoctor.reports.text import one_line, plain

# Text, anchors, and links from a statement to its evidence.
# What `plain` leaves and HTML does not allow: the code points that are no characters, in each of the 17 planes.
_NO_CHARACTERS = "".join(chr(plane * 0x10000 + last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
_FORBIDDEN = re.compile(f"[\ufdd0-\ufdef{_NO_CHARACTERS}]")
# Nobody sees these, and what is copied holds them.
_HIDDEN = re.compile("[\u00ad\u180e\u200b-\u200d\u2060-\u2064\u206a-\u206f\u3164\uffa0\U000e0000-\U000e007f]")
_ANCHOR = re.compile(r"[A-Z]{1,4}[0-9]{1,9}")
_NAME = r"([ERW][0-9]{1,6})"
_MENTION = re.compile(rf"(?<![\w.\['\"/-])(?:\[{_NAME}\]|{_NAME})(?![\w'\"/-]|\.\w)")
_WHOLE = 200_000
"""Of a longer text only the end is looked at: cleaning ten megabytes takes as long as all the rest."""


def clean(text: str) -> str:
    """Remove code points that HTML forbids, and invisible ones, from ``plain`` text."""
    without = _HIDDEN.sub("\ufffd", plain(text))
    return _FORBIDDEN.sub("\ufffd", without)


def finalize(value: object) -> object:
    """Prepare a value for the template: markup as it is, all else as ``clean`` text, which the template escapes."""
    return value if isinstance(value, Markup) else clean(str(value))


def esc(text: str) -> Markup:
    """``text``, cleaned and escaped."""
    return escape(clean(text))


def line(text: str, limit: int = 400) -> Markup:
    """``text`` on one line, cut with a count."""
    return escape(clean(one_line(text, limit)))


def code(text: str, limit: int = 400) -> Markup:
    """``text`` on one line as code; nothing for nothing."""
    return Markup("<code>{}</code>").format(line(text, limit)) if text else Markup("")


def mark_wrong(text: str, limit: int = 400) -> Markup:
    """``text`` as the part that is wrong, in words for those who do not see the colour."""
    return Markup('<mark><span class="hidden">differs: </span>{}</mark>').format(line(text, limit))


def dim(text: str, limit: int = 400) -> Markup:
    """``text`` in the background."""
    return Markup('<span class="dim">{}</span>').format(line(text, limit)) if text else Markup("")


def anchor(name: str) -> str:
    """``name`` as the id of an element; empty where it is not one of ours."""
    return name if _ANCHOR.fullmatch(name) else ""


def link(name: str, text: str = "") -> Markup:
    """A link to the evidence, run or line of a log ``name``; ``text`` is what is shown of it."""
    known = anchor(name)
    words = line(text or name, 60)
    return Markup('<a class="ref" href="#{}">{}</a>').format(known, words) if known else words


def links(names: Iterable[str]) -> Markup:
    """Links side by side."""
    return Markup(" ").join(link(name) for name in names)


def link_mentions(text: str, known: Collection[str], limit: int = 600) -> Markup:
    """``text`` on one line, in which each mention of evidence or a run that there is (``[E1]``, ``R2``) is a link."""
    cleaned, at, parts = clean(one_line(text, limit)), 0, []
    for found in _MENTION.finditer(cleaned):
        name = found[1] or found[2]
        if name in known:
            parts += [escape(cleaned[at : found.start()]), link(name)]
            at = found.end()
    return Markup("").join([*parts, escape(cleaned[at:])])


def ending(text: str, room: int) -> tuple[str, int]:
    """The last ``room`` characters from the start of a line, and how many characters stand before them."""
    cut = max(0, len(text) - _WHOLE)
    cleaned = clean(text[cut:]).rstrip("\n")
    if len(cleaned) > room:
        last = cleaned[len(cleaned) - room :]
        last = last.partition("\n")[2] or last
        return last, cut + len(cleaned) - len(last)
    return cleaned, cut


# Templates and icon.
_ICON = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'><circle cx='4' cy='4' r='4' fill='{}'/></svg>"


def template_environment() -> Environment:
    """The templates of reports."""
    return Environment(
        loader=PackageLoader("aotidoctor.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def verdict_icon(color: str) -> str:
    """The address of a dot in ``color``, which is part of the page itself."""
    return "data:image/svg+xml," + quote(_ICON.format(color))


def with_script_hash(script: str) -> dict[str, Markup]:
    """A script of ours, and the hash by which the policy of a page allows it."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"script": Markup(script), "script_hash": Markup(digest)}  # noqa: S704 - ours


# Blocks. Rows.
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
class TableLine:
    """One row. ``id`` is its anchor, where it is evidence."""

    cells: tuple[Cell, ...]
    tone: str = ""
    id: str = ""


@record
class TableBlock:
    """A table. ``groups`` are headings over several columns. ``stacks``: rows become cards where it is narrow.

    ``titled``: its label can be seen; else it is there for readers of screens.
    """

    kind: ClassVar[str] = "table"
    label: str
    headings: tuple[str, ...]
    rows: tuple[TableLine, ...]
    groups: tuple[tuple[str, int], ...] = ()
    stacks: bool = False
    titled: bool = False
    look: str = ""

    @property
    def is_long(self) -> bool:
        """Whether it has more than ``LONG`` rows: it is folded, and can be filtered."""
        return len(self.rows) > LONG


@record
class Pairs:
    """Labels with what they stand for."""

    kind: ClassVar[str] = "pairs"
    rows: tuple[tuple[str, Markup], ...]


@record
class OutputBlock:
    """Text as it was printed; ``before`` counts the characters that were cut off at its beginning."""

    kind: ClassVar[str] = "printed"
    title: Markup
    body: Markup
    before: int = 0


@record
class CommandBlock:
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
class NoteBlock:
    """A paragraph."""

    kind: ClassVar[str] = "note"
    body: Markup
    tone: str = ""


@record
class StepsBlock:
    """A list in an order."""

    kind: ClassVar[str] = "steps"
    items: tuple[Markup, ...]


@record
class Folded:
    """Blocks that are folded on screen and open on paper."""

    kind: ClassVar[str] = "folded"
    summary: Markup
    blocks: tuple[Block, ...]
    id: str = ""
    tone: str = ""


Block = TableBlock | Pairs | OutputBlock | CommandBlock | Figure | NoteBlock | StepsBlock | Folded


@record
class PageSection:
    """A part of the page with a heading that the navigation lists; shown only if it has blocks."""

    id: str
    title: str
    blocks: tuple[Block, ...]


def fold_tables(section: PageSection) -> PageSection:
    """The section with its long tables folded."""
    blocks = tuple(
        Folded(summary=line(f"{block.label}: {len(block.rows):,} rows"), blocks=(block,))
        if isinstance(block, TableBlock) and block.is_long
        else block
        for block in section.blocks
    )
    return PageSection(id=section.id, title=section.title, blocks=blocks)


def has_long(blocks: Sequence[Block]) -> bool:
    """Whether there is a long table, folded or not."""
    return any(
        (isinstance(block, TableBlock) and block.is_long) or (isinstance(block, Folded) and has_long(block.blocks))
        for block in blocks
    )


def cell(body: str | Markup, *, tone: str = "", look: str = "", span: int = 1, heads: bool = False) -> Cell:
    """A cell of text, which is put on one line, or of markup."""
    text = body if isinstance(body, Markup) else line(body)
    return Cell(body=text, tone=tone, look=look, span=span, heads=heads)


def mono(text: str) -> Cell:
    """A cell of code."""
    return cell(code(text))


def texts(rows: Sequence[Sequence[str]], *, tones: Sequence[str] = ()) -> tuple[TableLine, ...]:
    """Rows of plain text, with a tone for each where there are any."""
    given = [*tones, *[""] * (len(rows) - len(tones))]
    return tuple(
        TableLine(cells=tuple(cell(text, heads=at == 0) for at, text in enumerate(row)), tone=tone)
        for row, tone in zip(rows, given, strict=True)
    )


def printed_block(title: str | Markup, text: str, room: int) -> tuple[Block, ...]:
    """The end of ``text`` as a block; nothing for nothing."""
    cleaned, before = ending(text, room)
    if not cleaned.strip():
        return ()
    heading = title if isinstance(title, Markup) else line(title)
    return (OutputBlock(title=heading, body=esc(cleaned), before=before),)


def cut(what: str, rows: Sequence[TableLine], room: int) -> tuple[tuple[TableLine, ...], tuple[Block, ...]]:
    """The first ``room`` rows, and a note that counts the others."""
    more = len(rows) - room
    note = (NoteBlock(body=line(f"and {more:,} more {what}"), tone="dim"),) if more > 0 else ()
    return tuple(rows[:room]), note


# Rows of the two drawings.
@record
class ValueRow:
    """A tensor that a call wrote: range of its finite values, what is not finite, and how far it is off.

    ``call`` is empty but for the first tensor of a call. ``error`` is None where there is nothing to hold it against,
    ``agrees`` None where that is not known.
    """

    call: str
    tensor: str
    low: float | None
    high: float | None
    mean: float | None
    nan: int
    inf: int
    error: float | None
    agrees: bool | None
    bad: bool


@record
class ErrorRow:
    """An output: errors in eps of its dtype, of package and reference, and what rounding explains."""

    label: str
    error: float
    reference: float | None
    allowed: float | None
    bad: bool
