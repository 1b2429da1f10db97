"""A fleet as one HTML page that needs nothing else: no server, no network, no font.

All of it can be read without the script, which sorts tables, filters the items, and is allowed by its hash alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from itertools import islice

from aotidoctor.model.clusters import HERE, Cluster, ItemRow, Overview
from aotidoctor.reports import view
from aotidoctor.reports.fleet import words
from aotidoctor.reports.fleet.figures import over_time
from aotidoctor.reports.html.page import environment, icon, scripted
from aotidoctor.reports.text import one_line
from aotidoctor.reports.tones import COLORS

ROWS = 10_000
"""Items of a page; those that fail come first."""
_BYTES = 6 << 20
_CELL = 240
_DETAILED = 300


def render(summary: Overview, rows: Iterable[ItemRow]) -> str:
    """``summary`` with its items ``rows`` as a page."""
    head = words.verdict(summary)
    shown = _within(rows)
    script = (files("aotidoctor.reports") / "templates" / "fleet.js").read_text(encoding="utf-8")
    template = environment().get_template("fleet.html.jinja")
    page = template.render(
        head=head,
        summary=summary,
        against=words.against(summary),
        notes=words.notes(summary),
        clusters=[_cluster(number, cluster) for number, cluster in enumerate(summary.clusters, 1)],
        rows=[_row(row) for row in shown],
        left=summary.items - len(shown),
        states=sorted({row.state for row in shown}),
        causes=sorted({row.cause for row in shown if row.cause}),
        hosts=sorted({row.host for row in shown})[:500],
        here=HERE,
        words=words,
        drawing=over_time(summary.timeline),
        periods=list(enumerate(summary.timeline.starts)),
        matrix=list(zip(summary.matrix.hosts, summary.matrix.counts, summary.matrix.totals, strict=True)),
        most=max((count for counts in summary.matrix.counts for count in counts), default=1) or 1,
        command=view.command_text(summary.argv),
        **scripted(script),
        icon=icon(COLORS[head.tone]),
    )
    return page + "\n"


def _within(rows: Iterable[ItemRow]) -> list[ItemRow]:
    """The first rows that fit on a page."""
    kept, size = [], 0
    for row in islice(rows, ROWS):
        size += 300 + sum(min(len(cell), _CELL) for cell in (row.name, row.subject, row.problem, row.labels, row.host))
        if size > _BYTES:
            break
        kept.append(row)
    return kept


def _cluster(number: int, cluster: Cluster) -> dict[str, object]:
    return {
        "number": number,
        "cells": words.cluster_rows(cluster, number),
        "tone": "bad" if cluster.is_news or not cluster.change else "unsure",
        "count": cluster.count,
        "cause": words.cause(cluster),
        "title": words.title(cluster),
        "details": words.details(cluster) if number <= _DETAILED else [],
        "examples": [words.example(one, _CELL) for one in cluster.examples],
    }


def _row(row: ItemRow) -> tuple[str, ...]:
    about = row.subject or row.title or row.problem
    return (
        one_line(row.name, _CELL),
        one_line(row.host, _CELL),
        row.state,
        row.cause,
        str(row.cluster or ""),
        one_line(about, _CELL),
        f"{row.seconds:.2f}",
        one_line(row.seen, 40)[:16].replace("T", " "),
        one_line(row.labels, _CELL),
    )
