"""A fleet as Markdown that fits the body of an issue."""

from __future__ import annotations

from functools import partial

from aotidoctor.model.clusters import Cluster, Overview
from aotidoctor.reports import view
from aotidoctor.reports.fleet import words
from aotidoctor.reports.markdown.budget import Budget, cells, fitted, section
from aotidoctor.reports.markdown.text import cell, code, details, fence, prose


def render(summary: Overview) -> str:
    """``summary`` as Markdown, shorter than GitHub's limit."""
    return fitted(partial(_parts, summary))


def _parts(summary: Overview, budget: Budget) -> list[str]:
    head = words.verdict(summary)
    lines = [f"## {head.word}: {prose(head.text, 400)}", ""]
    if told := words.against(summary):
        lines += [f"- {prose(told)}"]
    lines += [f"- {prose(note)}" for note in words.notes(summary)[: budget.rows]]
    rows = cells((words.cluster_rows(cluster, number) for number, cluster in enumerate(summary.clusters, 1)), budget)
    shown = summary.clusters[: min(budget.rows, 100)]
    unexamined = [
        (cell(one.ending), f"{one.count:,}", cell(one.problem, budget.cell), cell(one.examples[0].name, budget.cell))
        for one in summary.unexamined
    ]
    return [
        "\n".join(lines).rstrip("\n"),
        section("Clusters", words.CLUSTERS, rows, budget),
        f"### What sets them apart\n\n{words.CORRELATION}" if shown else "",
        *(_details(number, cluster, budget) for number, cluster in enumerate(shown, 1)),
        section("Not examined", words.UNEXAMINED, unexamined, budget),
        _timeline(summary, budget),
        _matrix(summary, budget),
        _gone(summary, budget),
        _slowest(summary, budget),
        f"### Again\n\n{fence(view.command_text(summary.argv), language='sh', budget=4000)}",
        f"Made by aotidoctor {prose(summary.version)} at {summary.made}.",
    ]


def _details(number: int, cluster: Cluster, budget: Budget) -> str:
    rows = [f"- **{label}:** {code(text, 2 * budget.cell)}" for label, text in words.details(cluster)]
    return details(f"{number}. {words.cause(cluster)} ({words.plural_of(cluster.count, 'item')})", "\n".join(rows))


def _timeline(summary: Overview, budget: Budget) -> str:
    line = summary.timeline
    rows = [
        (start, *(str(counts[at]) for _, counts in line.series))
        for at, start in enumerate(line.starts)
        if any(counts[at] for _, counts in line.series)
    ]
    headings = (f"{line.unit.capitalize()} from", *(cell(name) for name, _ in line.series))
    return section("Causes over time", headings, rows[-budget.rows :], budget)


def _matrix(summary: Overview, budget: Budget) -> str:
    found = summary.matrix
    rows = [
        (cell(host, budget.cell), *(str(count or "") for count in counts), f"{total:,}")
        for host, counts, total in zip(found.hosts, found.counts, found.totals, strict=True)
    ]
    return section("Hosts and causes", ("Host", *(cell(name) for name in found.causes), "All items"), rows, budget)


def _gone(summary: Overview, budget: Budget) -> str:
    rows = [
        (cell(words.cause(one)), cell(one.title, budget.cell), str(one.before), str(one.healthy))
        for one in summary.gone
    ]
    return section("Gone since the baseline", words.GONE, rows, budget)


def _slowest(summary: Overview, budget: Budget) -> str:
    rows = [(cell(one.name, budget.cell), cell(one.host), f"{one.seconds:.2f}", one.state) for one in summary.slowest]
    return section("Slowest items", words.SLOWEST, rows, budget)
