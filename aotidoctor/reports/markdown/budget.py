"""How much of each long part Markdown shows, so that the whole fits the body of an issue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aotidoctor.model.phrases import plural
from aotidoctor.model.record import record
from aotidoctor.reports.markdown.text import cell, details, table

# GitHub refuses a body of more than 65,536 characters. Counted in UTF-16 units, the larger of the ways to count.
LIMIT = 65_535


@record
class Budget:
    """How much of each long part is shown: characters of printed text, rows of tables, characters of a cell."""

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


def fitted(parts: Callable[[Budget], Sequence[str]]) -> str:
    """The parts in the largest budget in which they fit; in the smallest, later parts are left out and counted."""
    told: list[str] = []
    for budget in ROOMS:
        told = [part for part in parts(budget) if part]
        text = "\n\n".join(told) + "\n"
        if length(text) <= LIMIT:
            return text
    return _without_the_longest(told)


def _without_the_longest(parts: Sequence[str]) -> str:
    kept = [length(part) + 2 for part in parts]
    left: list[int] = []
    while sum(kept) > LIMIT - 200:
        worst = max(range(1, len(kept)), key=lambda index: kept[index], default=0)
        if worst == 0 or kept[worst] == 0:
            break
        left.append(worst)
        kept[worst] = 0
    shown = [part for index, part in enumerate(parts) if index not in left]
    count = plural(len(left), "part")
    return "\n\n".join([*shown, f"{count} too long for an issue; the JSON report has everything."]) + "\n"


def cells(rows: Iterable[Sequence[str]], budget: Budget, *, times: int = 1) -> list[tuple[str, ...]]:
    """Rows of texts of others as cells, each with the room of ``times`` one."""
    return [tuple(cell(text, times * budget.cell) for text in row) for row in rows]


def section(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], budget: Budget) -> str:
    """A table under its title, with a count of the rows left out; nothing where there are no rows."""
    if not rows:
        return ""
    shown = table(headings, rows[: budget.rows])
    if len(rows) > budget.rows:
        shown += f"\n\nand {len(rows) - budget.rows} more."
    if len(rows) > 30:
        shown = details(f"{title} ({len(rows)})", shown)
    return f"### {title}\n\n{shown}"
