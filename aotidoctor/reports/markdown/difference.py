"""A comparison of two documents as Markdown that fits an issue."""

from __future__ import annotations

from functools import partial

from aotidoctor.model.difference import Comparison
from aotidoctor.reports import difference_view as view
from aotidoctor.reports.markdown.budget import Budget, fitted
from aotidoctor.reports.markdown.text import cell, code, details, prose, table


def render(found: Comparison) -> str:
    """``found`` as Markdown."""
    return fitted(partial(_parts, found))


def _parts(found: Comparison, budget: Budget) -> list[str]:
    head = view.headline(found)
    sides = "\n".join(f"- **{side.label}:** {code(view.side_text(side), 400)}" for side in (found.a, found.b))
    counts = "\n".join(f"- **{label}:** {prose(text)}" for label, text in view.counts(found))
    unknown = "\n".join(f"- {prose(line, budget.cell * 2)}" for line in found.unknown[: budget.rows])
    more = len(found.unknown) - budget.rows
    if more > 0:
        unknown += f"\n\nand {more} more."
    return [
        f"## {head.word}: {prose(head.text, 300)}",
        sides,
        _differences(found, budget),
        counts,
        details("Unknown on one side", unknown) if unknown else "",
    ]


def _differences(found: Comparison, budget: Budget) -> str:
    rows = []
    for item in found.differences[: budget.rows]:
        mark, what, a, b, playbook, why = view.row(item)
        shown = (str(item.rank), mark, prose(what, budget.cell), cell(a, budget.cell), cell(b, budget.cell))
        rows.append((*shown, cell(playbook, budget.cell), prose(why, budget.cell * 2)))
    if not rows:
        return ""
    shown_table = table(("", *view.HEADINGS), rows)
    more = len(found.differences) - len(rows)
    return f"### Differences\n\n{shown_table}" + (f"\n\nand {more} more." if more > 0 else "")
