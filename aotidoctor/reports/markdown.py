"""Write a report as Markdown that fits the body of an issue: fewer than 65,536 characters.

Long parts are folded into ``<details>``; when the whole is too long it is written again with less room for each, and
what was cut is counted. It states the exact command and version that made it. Nothing in text of others can end a
fence, open a tag, mention a person or break a table.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Sequence
from functools import partial

from aotidoctor.model.evidence import plural
from aotidoctor.model.fleet import DocumentComparison
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports.page import log_page, report_view
from aotidoctor.reports.page.blocks import (
    MARKDOWN,
    Block,
    CommandBlock,
    EntriesBlock,
    Folded,
    NoteBlock,
    OutputBlock,
    PageSection,
    Pairs,
    StepsBlock,
    TableBlock,
    heading_of,
    plain_words,
)
from aotidoctor.reports.page.report_page import SECTIONS, sections
from aotidoctor.reports.page.report_view import headline
from aotidoctor.reports.text import one_line, plain, tail

# Text of others inside Markdown.
_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")
# What GitHub links in running text, however it is escaped: @name, #1, GH-1, URLs, hashes of commits.
_LINKED = re.compile(
    r"(?i)(@|#(?=\w)|\bgh-(?=\d)|:(?=//)|\bwww(?=\.)|\b(?=[0-9]*[a-f])(?=[a-f]*\d)[0-9a-f]{6}(?=[0-9a-f]+\b))"
)


def code(text: str, limit: int = 300) -> str:
    """Inline code. The run of backticks around it is longer than any inside; empty text is empty."""
    line = one_line(text, limit)
    if not line:
        return ""
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def cell(text: str, limit: int = 160) -> str:
    """Inline code inside a table: a bar would end the cell even there, so it becomes its look-alike."""
    return code(text.replace("|", "\u2502"), limit)


def prose(text: str, limit: int = 600) -> str:
    """Running text: what Markdown or HTML give a meaning is escaped, and nothing becomes a mention or a link."""
    return html.escape(_SPECIAL.sub(r"\\\1", prevent_links(one_line(text, limit))), quote=False)


def prevent_links(text: str) -> str:
    """``text`` in which GitHub sees no person, issue, commit or address: an invisible space breaks each."""
    return _LINKED.sub("\\1\u200b", text)


def fence(text: str, *, language: str = "text", budget: int = 4000) -> str:
    """A fenced block of the end of ``text``; the fence is longer than any run of backticks inside."""
    body = tail(text, budget)
    ticks = "`" * max(3, _longest_run(body) + 1)
    return f"{ticks}{language}\n{body}\n{ticks}"


def _longest_run(text: str) -> int:
    """Of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)


def details(summary: str, body: str) -> str:
    """A part that is folded away. The empty lines let the body be read as Markdown."""
    # Nothing that stands in HTML is read as Markdown; what is read so elsewhere is escaped all the same.
    title = _SPECIAL.sub(lambda found: f"&#{ord(found[1])};", html.escape(prevent_links(plain(summary)), quote=False))
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are already escaped."""
    lines = [f"| {' | '.join(headings)} |", f"|{'|'.join(' --- ' for _ in headings)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


# How much of each long part is shown.
# GitHub refuses a body of more than 65,536 characters. Counted in UTF-16 units, the larger of the ways to count.
LIMIT = 65_535


@record
class Budget:
    """Limits of long parts: characters of printed text, rows of tables, characters of a cell."""

    printed: int
    rows: int
    cell: int


# From generous to what nearly always fits: 8 rows of at most 7 cells of 40 characters in each table.
ROOMS = (
    Budget(printed=8000, rows=400, cell=240),
    Budget(printed=3000, rows=150, cell=160),
    Budget(printed=1000, rows=60, cell=120),
    Budget(printed=300, rows=30, cell=60),
    Budget(printed=100, rows=8, cell=40),
)


def length(text: str) -> int:
    """Length in UTF-16 units: what lies outside the basic plane counts twice."""
    return len(text) + sum(1 for letter in text if letter > "\uffff") if not text.isascii() else len(text)


def fit_parts(parts: Callable[[Budget], Sequence[str]]) -> str:
    """The parts in the largest budget in which they fit; in the smallest, later parts are left out and counted."""
    entries: list[str] = []
    for budget in ROOMS:
        entries = [part for part in parts(budget) if part]
        text = "\n\n".join(entries) + "\n"
        if length(text) <= LIMIT:
            return text
    items = [length(part) + 2 for part in entries]
    left: list[int] = []
    while sum(items) > LIMIT - 200:
        worst = max(range(1, len(items)), key=lambda index: items[index], default=0)
        if worst == 0 or items[worst] == 0:
            break
        left.append(worst)
        items[worst] = 0
    listed = [part for index, part in enumerate(entries) if index not in left]
    count = plural(len(left), "part")
    return "\n\n".join([*listed, f"{count} too long for an issue; the JSON report has everything."]) + "\n"


# Blocks.
def section_parts(section: PageSection, budget: Budget) -> list[str]:
    """A part for each block, the first with the title of the section before it, or each with its own."""
    parts, title = [], section.title
    for block in section.blocks:
        own = heading_of(block)
        if text := block_text(block, budget):
            heading = prose(own or title, 200)
            parts.append(f"### {heading}\n\n{text}" if heading else text)
            title = ""
    return parts


def block_text(block: Block, budget: Budget) -> str:
    """``block`` without a heading; empty where it is none of Markdown."""
    if MARKDOWN not in block.formats:
        return ""
    match block:
        case TableBlock():
            return _table_text(block.of_format(MARKDOWN), budget)
        case EntriesBlock(table=TableBlock() as whole):
            return block_text(whole, budget)
        case Pairs():
            lines = ((label, code(plain_words(words), 600)) for label, words in block.rows)
            return "\n".join(f"- **{label}:** {text}" if label else f"- {text}" for label, text in lines)
        case OutputBlock():
            title = code(plain_words(block.title))
            text = fence(block.text, language=block.language, budget=min(budget.printed, block.room))
            return f"{title}:\n\n{text}" if title else text
        case CommandBlock():
            return fence(block.text, language="sh", budget=4000)
        case NoteBlock():
            return prose(plain_words(block.words))
        case StepsBlock():
            steps = enumerate(block.items[: budget.rows], block.first)
            return "\n".join(f"{number}. {prose(step, budget.cell * 3)}" for number, step in steps)
        case Folded():
            parts = [text for one in block.blocks if (text := block_text(one, budget))]
            return details(plain_words(block.summary), "\n\n".join(parts)) if parts else ""
    return ""


def _table_text(block: TableBlock, budget: Budget) -> str:
    rows = block.rows
    if len(rows) > budget.rows:
        # Marked rows first, so that cutting never hides the one that matters.
        rows = tuple(sorted(rows, key=lambda row: not row.mark))
    limit = block.room * budget.cell
    lines = []
    for row in rows[: budget.rows]:
        words = zip(block.headings, map(plain_words, (one.words for one in row.cells)), strict=True)
        texts = [prose(text, limit) if heading in block.bare else cell(text, limit) for heading, text in words]
        lines.append([*((cell(row.mark),) if block.marked else ()), *texts])
    text = table([*(("",) if block.marked else ()), *(prose(one) for one in block.headings)], lines)
    if len(rows) > budget.rows:
        text += f"\n\nand {len(rows) - budget.rows} more."
    return details(f"{block.label} ({len(rows)})", text) if block.folded or len(rows) > 30 else text


def render_markdown(report: Report) -> str:
    """``report`` as Markdown, shorter than GitHub's limit of 65,536 characters."""
    return fit_parts(partial(_parts, report))


def _parts(report: Report, budget: Budget) -> list[str]:
    return [_first(report), *named_sections(report, budget, SECTIONS)]


def named_sections(report: Report, budget: Budget, names: Collection[str]) -> list[str]:
    """The parts of the sections ``names``."""
    return [part for section in sections(report, kept=names) for part in section_parts(section, budget)]


def _first(report: Report) -> str:
    head = headline(report)
    lines = [f"## {head.word}: {prose(head.text, 200)}", ""]
    if report_view.has_artifact(report):
        lines += [code(report_view.artifact_text(report)), ""]
    if report.log is not None and log_page.is_log(report):
        lines += [code(log_page.log_text(report.log)), ""]
    if note := report_view.partial_note(report):
        lines += [f"**{note}**", ""]
    return "\n".join([*lines, *first_lines(report)]).rstrip("\n")


def first_lines(report: Report) -> list[str]:
    """The first screen under its headline, as a list."""
    lines: list[str] = []
    for number, row in enumerate(report_view.first_rows(report)):
        if row.is_code:
            lines += ["", fence(row.text, language="python", budget=2000), ""]
        else:
            text = code(row.text, 600) if row.label in ("Subject", "Looked like", "Known", "Says") else prose(row.text)
            # An unlabelled line goes on with the row before it.
            lines.append(f"- **{row.label}:** {text}" if row.label or number == 0 else f"- {text}")
    return lines


# A comparison of two documents.
def render_difference_markdown(found: DocumentComparison) -> str:
    """``found`` as Markdown."""
    return fit_parts(partial(_difference_parts, found))


def _difference_parts(found: DocumentComparison, budget: Budget) -> list[str]:
    from aotidoctor.reports.page.compared_page import difference_headline, difference_sections

    head = difference_headline(found)
    sections = difference_sections(found, detail=1)
    parts = [part for section in sections for part in section_parts(section, budget)]
    return [f"## {head.word}: {prose(head.text, 300)}", *parts]
