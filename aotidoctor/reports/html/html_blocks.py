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
from dataclasses import replace
from importlib.resources import files
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from aotidoctor.model.evidence import shorten
from aotidoctor.model.record import record
from aotidoctor.reports.page.blocks import HTML, Block, Folded, OutputBlock, PageSection, Span, TableBlock, Words
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


def anchor(name: str) -> str:
    """``name`` as the id of an element; empty where it is not one of ours."""
    return name if _ANCHOR.fullmatch(name) else ""


def link(name: str, text: str = "") -> Markup:
    """A link to the evidence, run or line of a log ``name``; ``text`` is what is shown of it."""
    known = anchor(name)
    words = line(text or name, 60)
    return Markup('<a class="ref" href="#{}">{}</a>').format(known, words) if known else words


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


def template_environment(writer: PageWriter | None = None) -> Environment:
    """The templates of reports; ``writer`` makes the parts of their blocks."""
    environment = Environment(
        loader=PackageLoader("aotidoctor.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(writer=writer, is_long=is_long, rows_text=rows_text, anchor=anchor)
    return environment


def verdict_icon(color: str) -> str:
    """The address of a dot in ``color``, which is part of the page itself."""
    return "data:image/svg+xml," + quote(_ICON.format(color))


def with_script_hash(*names: str) -> dict[str, Markup]:
    """A script made of our files ``names``, and the hash by which the policy of a page allows it; none without any."""
    if not names:
        return {"script": Markup(""), "script_hash": Markup("")}
    templates = files("aotidoctor.reports") / "templates"
    script = "".join((templates / name).read_text(encoding="utf-8") for name in names)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"script": Markup(script), "script_hash": Markup(digest)}  # noqa: S704 - ours


# Blocks.
_LONG = 60
"""Rows above which a table is folded, and can be filtered."""
_ROOM = 1000
"""Rows of a table."""


@record
class OutputEnd:
    """The end of what was printed; ``before`` counts the characters before it."""

    body: Markup
    before: int


class PageWriter:
    """Makes the parts of blocks for the template. ``known`` are the ids to which there are links."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known

    def words(self, words: Words, limit: int = 4000) -> Markup:
        """Text with its looks; what it mentions of evidence and runs is a link where it is no code."""
        if isinstance(words, str):
            return link_mentions(words, self._known, limit)
        return Markup("").join(self._span(span, limit) for span in words)

    def line(self, text: str, limit: int = 600) -> Markup:
        """``text`` on one line, without links."""
        return line(text, limit)

    def links(self, names: Iterable[str]) -> Markup:
        """Links side by side to those that there are; to the event of a log by its line."""
        known = (name for name in names if name in self._known)
        return Markup(" ").join(link(name, f"line {name[1:]}" if name.startswith("L") else "") for name in known)

    def _span(self, span: Span, limit: int) -> Markup:
        if span.link:
            return link(span.link, span.text) if span.link in self._known else line(span.text)
        text = escape(shorten(clean(span.text).replace("\n", " "), limit))
        match span.look:
            case "":
                before, after = " " * span.text.startswith(" "), " " * span.text[1:].endswith(" ")
                return before + link_mentions(span.text, self._known, limit) + after
            case "code":
                return code(span.text, limit)
            case "bold":
                return Markup("<b>{}</b>").format(text)
            case "wrong":
                return Markup('<mark><span class="hidden">differs: </span>{}</mark>').format(line(span.text, limit))
            case "bar" | "bar open":
                left, _, width = span.text.partition(" ")
                return Markup('<span class="{}" style="left:{}%;width:{}%"></span>').format(span.look, left, width)
        return Markup('<span class="{}">{}</span>').format(span.look, text)

    def table(self, block: TableBlock) -> TableBlock:
        """The columns and rows that a page shows; empty columns without a heading are left out."""
        table = block.of_format(HTML)
        return replace(table, rows=table.rows[:_ROOM])

    def output(self, block: OutputBlock) -> OutputEnd | None:
        """What there is room for; None where it is blank."""
        cleaned, before = ending(block.text, block.room)
        if not cleaned.strip():
            return None
        if not block.marks:
            return OutputEnd(body=esc(cleaned), before=before)
        lines = (
            Markup("<mark>{}</mark>").format(esc(one[1:].lstrip())) if one.startswith("►") else esc(one)
            for one in cleaned.split("\n")
        )
        return OutputEnd(body=Markup("\n").join(lines), before=before)


def rows_text(block: TableBlock) -> str:
    """``and 12 more rows``, of what a page has no room for; empty where it has."""
    more = len(block.rows) - _ROOM
    return f"and {more:,} {block.noun}" if more > 0 else ""


def is_long(block: Block) -> bool:
    """Whether it is a table of many rows."""
    return isinstance(block, TableBlock) and len(block.rows) > _LONG


def fold_tables(section: PageSection) -> PageSection:
    """The section as a page shows it: with its long tables folded."""
    blocks = tuple(
        Folded(summary=f"{block.label}: {len(block.rows):,} rows", blocks=(block,))
        if isinstance(block, TableBlock) and is_long(block)
        else block
        for block in section.blocks
        if HTML in block.formats
    )
    return replace(section, blocks=blocks)


def has_long(blocks: Sequence[Block]) -> bool:
    """Whether there is a long table, folded or not."""
    return any(is_long(block) or (isinstance(block, Folded) and has_long(block.blocks)) for block in blocks)


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
