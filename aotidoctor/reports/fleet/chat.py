"""The whole fleet in one line, for a chat: no address, no name of a file, nobody mentioned."""

from __future__ import annotations

from collections import Counter

from aotidoctor.model.clusters import Overview
from aotidoctor.model.phrases import listed
from aotidoctor.reports.fleet import words
from aotidoctor.reports.markdown.text import unlinked
from aotidoctor.reports.text import one_line

_CAUSES = 4


def render(summary: Overview) -> str:
    """One line that ends in a newline."""
    head = words.verdict(summary)
    parts = [f"{head.word}: {head.text}"]
    shown = summary.news or summary.clusters
    counted: Counter[str] = Counter()
    for cluster in shown:
        counted[words.cause(cluster)] += cluster.count
    if counted:
        named = listed([f"{cause} {count:,}" for cause, count in counted.most_common()], _CAUSES)
        parts.append(f"({'new: ' if summary.news else ''}{named})")
    if summary.baseline and (summary.gone or summary.fixed):
        parts.append(f"gone: {len(summary.gone)}, fixed: {summary.fixed:,}")
    return one_line(unlinked(" ".join(parts)), 500) + "\n"
