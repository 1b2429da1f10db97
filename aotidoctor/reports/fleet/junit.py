"""A fleet as JUnit XML: one case per item.

An item fails where its cluster is neither accepted nor known since the baseline: those are skipped, with the reason.
What was not examined is an error.
"""

from __future__ import annotations

from collections.abc import Iterable

from aotidoctor.model.clusters import NEW, Cluster, ItemRow, Overview
from aotidoctor.reports import view
from aotidoctor.reports.fleet import words
from aotidoctor.reports.junit_xml import Case, document
from aotidoctor.reports.text import one_line

MOST = 20_000
"""Cases of a document. Those that fail come first."""
_MESSAGE = 400


def render(summary: Overview, rows: Iterable[ItemRow]) -> str:
    """``summary`` with its items ``rows`` as XML."""
    cases: list[Case] = []
    left = 0
    for row in rows:
        if len(cases) < MOST:
            cases.append(_case(row, summary))
        else:
            left += 1
    head = words.verdict(summary)
    properties = {
        "tool": f"aotidoctor {summary.version}",
        "command": view.command_text(summary.argv),
        "verdict": f"{head.word}: {head.text}",
        **({"left_out": f"{left} healthy or known items"} if left else {}),
    }
    seconds = sum(case.seconds for case in cases)
    return document("aotidoctor fleet", cases, seconds=seconds, at=summary.made, properties=properties)


def _case(row: ItemRow, summary: Overview) -> Case:
    family = f"aotidoctor.{row.command}.{row.host}"
    match row.state:
        case "healthy":
            return Case(name=row.name, family=family, seconds=row.seconds)
        case "unexamined":
            message = one_line(row.problem or "not examined", _MESSAGE)
            return Case(
                name=row.name, family=family, outcome="error", kind="not-examined", message=message, seconds=row.seconds
            )
    cluster = summary.clusters[row.cluster - 1] if row.cluster else None
    known = _known(cluster, summary) if cluster is not None else ""
    told = one_line(f"{row.cause}: {row.title or row.subject or row.stage}", _MESSAGE)
    return Case(
        name=row.name,
        family=family,
        outcome="skipped" if known else "failure",
        kind=row.cause,
        message=f"{known}: {told}" if known else told,
        text="\n".join(part for part in (row.subject, row.signature, row.report) if part),
        seconds=row.seconds,
    )


def _known(cluster: Cluster, summary: Overview) -> str:
    """Why it is no news; empty where it is."""
    if cluster.is_accepted and cluster.accepted is not None:
        return f"accepted until {cluster.accepted.until} ({cluster.accepted.reason})"
    if summary.baseline and cluster.change != NEW and not cluster.regressed:
        return "known since the baseline"
    return ""
