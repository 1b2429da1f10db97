"""A fleet as Markdown that fits the body of an issue."""

from __future__ import annotations

from functools import partial

from aotidoctor.model.clusters import Cluster, Overview
from aotidoctor.reports import view
from aotidoctor.reports.fleet import words
from aotidoctor.reports.markdown.room import Room, fitted, section
from aotidoctor.reports.markdown.text import cell, code, details, fence, prose


def render(summary: Overview) -> str:
    """``summary`` as Markdown, shorter than GitHub's limit."""
    return fitted(partial(_parts, summary))


def _parts(summary: Overview, room: Room) -> list[str]:
    head = words.verdict(summary)
    lines = [f"## {head.word}: {prose(head.text, 400)}", ""]
    if told := words.against(summary):
        lines += [f"- {prose(told)}"]
    lines += [f"- {prose(note)}" for note in words.notes(summary)[: room.rows]]
    rows = [
        tuple(cell(text, room.cell) for text in words.cluster_rows(cluster, number))
        for number, cluster in enumerate(summary.clusters, 1)
    ]
    shown = summary.clusters[: min(room.rows, 100)]
    unexamined = [
        (cell(one.ending), f"{one.count:,}", cell(one.problem, room.cell), cell(one.examples[0].name, room.cell))
        for one in summary.unexamined
    ]
    return [
        "\n".join(lines).rstrip("\n"),
        section("Clusters", words.CLUSTERS, rows, room),
        f"### What sets them apart\n\n{words.CORRELATION}" if shown else "",
        *(_details(number, cluster, room) for number, cluster in enumerate(shown, 1)),
        section("Not examined", words.UNEXAMINED, unexamined, room),
        _timeline(summary, room),
        _matrix(summary, room),
        _gone("Gone since the baseline", summary, room),
        _slowest(summary, room),
        f"### Again\n\n{fence(view.command_text(summary.argv), language='sh', room=4000)}",
        f"Made by aotidoctor {prose(summary.version)} at {summary.made}.",
    ]


def _details(number: int, cluster: Cluster, room: Room) -> str:
    rows = [f"- **{label}:** {code(text, 2 * room.cell)}" for label, text in words.details(cluster)]
    return details(f"{number}. {words.cause(cluster)} ({words.plural_of(cluster.count, 'item')})", "\n".join(rows))


def _timeline(summary: Overview, room: Room) -> str:
    line = summary.timeline
    rows = [
        (start, *(str(counts[at]) for _, counts in line.series))
        for at, start in enumerate(line.starts)
        if any(counts[at] for _, counts in line.series)
    ]
    headings = (f"{line.unit.capitalize()} from", *(cell(name) for name, _ in line.series))
    return section("Causes over time", headings, rows[-room.rows :], room)


def _matrix(summary: Overview, room: Room) -> str:
    found = summary.matrix
    rows = [
        (cell(host, room.cell), *(str(count or "") for count in counts), f"{total:,}")
        for host, counts, total in zip(found.hosts, found.counts, found.totals, strict=True)
    ]
    return section("Hosts and causes", ("Host", *(cell(name) for name in found.causes), "All items"), rows, room)


def _gone(name: str, summary: Overview, room: Room) -> str:
    rows = [
        (cell(words.cause(one)), cell(one.title, room.cell), str(one.before), str(one.healthy)) for one in summary.gone
    ]
    return section(name, words.GONE, rows, room)


def _slowest(summary: Overview, room: Room) -> str:
    rows = [(cell(one.name, room.cell), cell(one.host), f"{one.seconds:.2f}", one.state) for one in summary.slowest]
    return section("Slowest items", words.SLOWEST, rows, room)
