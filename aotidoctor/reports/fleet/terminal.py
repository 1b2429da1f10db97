"""A fleet for a terminal, through rich."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.text import Text

from aotidoctor.model.clusters import Cluster, Overview
from aotidoctor.reports import view
from aotidoctor.reports.fleet import words
from aotidoctor.reports.terminal.captured import for_stream, plain
from aotidoctor.reports.terminal.layout import Layout
from aotidoctor.reports.text import one_line

_MOST, _DETAILED, _PERIODS = 40, 8, 14


def text(summary: Overview, *, stream: TextIO, environ: Mapping[str, str], detail: int = 0) -> str:
    """``summary`` as ``stream`` can show it; ``detail`` -1 the first lines only, 0 normal, 1 all."""
    return for_stream(lambda console: _render(summary, Layout(console), detail), stream=stream, environ=environ)


def plain_text(summary: Overview, *, width: int = 100, detail: int = 0) -> str:
    """``summary`` without colour at a fixed width."""
    return plain(lambda console: _render(summary, Layout(console), detail), width=width)


def _render(summary: Overview, out: Layout, detail: int) -> None:
    head = words.verdict(summary)
    out.headline(head)
    if told := words.against(summary):
        out.paragraph(told, style="dim")
    for note in words.notes(summary):
        out.paragraph(note, style="dim")
    if detail < 0:
        return
    most = None if detail > 0 else _MOST
    _clusters(summary.clusters, out, most)
    _details(summary.clusters, out, None if detail > 0 else _DETAILED)
    _unexamined(summary, out)
    _timeline(summary, out, None if detail > 0 else _PERIODS)
    _matrix(summary, out, most)
    _gone(summary, out, most)
    rows = [
        (one_line(one.name, 120), one_line(one.host, 40), f"{one.seconds:.2f}", one.state) for one in summary.slowest
    ]
    _table("Slowest items", words.SLOWEST, rows if detail > 0 else rows[:3], out)
    out.blank()
    out.code(view.command_text(summary.argv), label=" Again: ")
    out.line(Text(f" aotidoctor {summary.version}, {summary.made}", style="dim"))


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], out: Layout, left: int = 0) -> None:
    if not rows:
        return
    out.title(title)
    out.table(headings, rows)
    if left > 0:
        out.more(f"{left:,} more")


def _clusters(found: Sequence[Cluster], out: Layout, most: int | None) -> None:
    rows = [words.cluster_rows(cluster, number) for number, cluster in enumerate(found, 1)]
    known = any(row[4] for row in rows)
    kept = [row if known else (*row[:4], *row[5:]) for row in rows[:most]]
    headings = words.CLUSTERS if known else (*words.CLUSTERS[:4], *words.CLUSTERS[5:])
    _table("Clusters", headings, kept, out, len(rows) - len(kept))


def _details(found: Sequence[Cluster], out: Layout, most: int | None) -> None:
    if not found:
        return
    out.title("What sets them apart")
    out.paragraph(words.CORRELATION, style="dim")
    for number, cluster in enumerate(found[:most], 1):
        out.line(Text(f" {number}. {words.cause(cluster)}, {words.plural_of(cluster.count, 'item')}", style="bold"))
        before = ""
        for label, told in words.details(cluster):
            out.row("" if label == before else label, told, indent=3)
            before = label
    if most is not None and len(found) > most:
        out.more(f"{len(found) - most:,} more")


def _unexamined(summary: Overview, out: Layout) -> None:
    rows = [
        (one.ending, f"{one.count:,}", one_line(one.problem, 120), one_line(one.examples[0].name, 80))
        for one in summary.unexamined
    ]
    _table("Not examined", words.UNEXAMINED, rows, out)


def _timeline(summary: Overview, out: Layout, most: int | None) -> None:
    line = summary.timeline
    if len(line.starts) < 2:
        return
    rows = [(start, *(str(counts[at] or "") for _, counts in line.series)) for at, start in enumerate(line.starts)]
    headings = (f"{line.unit.capitalize()} from", *(name for name, _ in line.series))
    kept = rows if most is None else rows[-most:]
    _table("Causes over time", headings, kept, out, len(rows) - len(kept))


def _matrix(summary: Overview, out: Layout, most: int | None) -> None:
    found = summary.matrix
    if len(found.hosts) < 2 or not found.causes:
        return
    rows = [
        (one_line(host, 60), *(str(count or "") for count in counts), f"{total:,}")
        for host, counts, total in zip(found.hosts, found.counts, found.totals, strict=True)
    ]
    kept = rows[:most]
    _table("Hosts and causes", ("Host", *found.causes, "All items"), kept, out, len(rows) - len(kept))


def _gone(summary: Overview, out: Layout, most: int | None) -> None:
    for name, found in (("Gone since the baseline", summary.gone), ("Seen before, not now", summary.past)):
        rows = [(words.cause(one), one_line(one.title, 120), str(one.before), str(one.healthy)) for one in found]
        kept = rows[:most]
        _table(name, words.GONE, kept, out, len(rows) - len(kept))
