"""Describe the summary of a fleet in words, and write it for a terminal, as Markdown, chat line, JSON or CSV.

The chat line is the whole fleet in one line: no address, no file name, nobody mentioned. The Markdown fits the body of
an issue. The JSON has schema ``aotidoctor.clusters/1``: everything but the rows of the items, which are in the CSV
(RFC 4180), in which no cell is a formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TextIO

from rich.text import Text

from aotidoctor.model.evidence import list_names, plural
from aotidoctor.model.fleet_summary import (
    CHANGED,
    HERE,
    NEW,
    SUMMARY_SCHEMA,
    Acceptance,
    Cluster,
    Example,
    Gone,
    ItemRow,
    Overview,
    Trait,
)
from aotidoctor.reports import report_view
from aotidoctor.reports.json.json_report import dump_json, pick_fields, record_json
from aotidoctor.reports.markdown import (
    Budget,
    cell,
    cells,
    code,
    details,
    fence,
    fit_parts,
    prevent_links,
    prose,
    section,
)
from aotidoctor.reports.terminal.terminal_layout import Layout, capture_for_stream, capture_plain
from aotidoctor.reports.text import Headline, one_line

# What every format says.
CORRELATION = (
    "Features that separate a cluster from the healthy items. They are correlations, and need not be the cause."
)
CLUSTERS = ("#", "Items", "Cause", "What", "Change", "First seen", "Last seen")
UNEXAMINED = ("Ended", "Items", "Reason", "For example")
GONE = ("Cause", "What", "Items before", "Healthy now")
SLOWEST = ("Item", "Host", "Seconds", "State")


def fleet_verdict(summary: Overview) -> Headline:
    """The first line."""
    counts = [f"{summary.failing:,} of {plural_of(summary.items, 'item')} failing"]
    if summary.failing:
        counts[0] += f" in {plural_of(len(summary.clusters) + summary.more_clusters, 'cluster')}"
    counts.append(f"{summary.healthy:,} healthy")
    if summary.not_examined:
        counts.append(f"{summary.not_examined:,} not examined")
    text = ", ".join(counts)
    if summary.news:
        regressed = sum(cluster.regressed for cluster in summary.news if cluster.change != NEW)
        new = sum(cluster.change == NEW for cluster in summary.news)
        parts = [plural_of(new, "new cluster")] if new else []
        parts += [f"{plural_of(regressed, 'item')} healthy before"] if regressed else []
        return Headline("NEW", f"{' and '.join(parts)}; {text}", "bad")
    if summary.blind:
        return Headline("NOT EXAMINED", f"{plural_of(summary.blind, 'item')} examined before; {text}", "unsure")
    if summary.failing:
        known = bool(summary.baseline) or all(cluster.is_accepted for cluster in summary.clusters)
        return Headline("NOTHING NEW" if known else "FAILING", text, "unsure" if known else "bad")
    if not summary.healthy:
        return Headline("NOT EXAMINED" if summary.items else "EMPTY", text, "unsure")
    return Headline("HEALTHY" if not summary.not_examined else "PARTLY EXAMINED", text, "good")


def plural_of(count: int, noun: str) -> str:
    """``1 item``, ``12,345 items``."""
    return plural(count, noun).replace(str(count), f"{count:,}", 1)


def baseline_text(summary: Overview) -> str:
    """The comparison with the baseline in one line; empty without one."""
    if not summary.baseline:
        return ""
    changed = sum(cluster.change == CHANGED for cluster in summary.clusters)
    new = sum(cluster.change == NEW for cluster in summary.clusters)
    parts = [f"{plural_of(new, 'cluster')} new", f"{changed} changed", f"{len(summary.gone)} gone"]
    parts += [
        f"{plural_of(summary.fixed, 'failing item')} fixed",
        f"{plural_of(summary.added, 'item')} added",
        f"{summary.removed:,} removed",
    ]
    return f"against {one_line(summary.baseline)}: " + ", ".join(parts)


def fleet_notes(summary: Overview) -> list[str]:
    """List notes on the data: damaged, unfinished, not as expected, or out of date."""
    found = [
        f"{one_line(item.folder)}: {plural_of(item.lines, 'line')} could not be read: "
        + one_line("; ".join(item.reasons), 300)
        for item in summary.damaged
    ]
    found += [f"{one_line(folder)}: the run has not finished; items are missing" for folder in summary.unfinished]
    if summary.more_clusters:
        found.append(f"{plural_of(summary.more_clusters, 'smaller cluster')} not shown; their items are in the CSV")
    if summary.expected:
        found.append(f"{plural_of(summary.expected, 'item')} failing as the manifest expects")
    if summary.unexpected:
        found.append(f"{plural_of(summary.unexpected, 'item')} not as the manifest expects")
    expired = [cluster.accepted for cluster in summary.clusters if cluster.accepted and cluster.accepted.expired]
    found += [f"accepted until {entry.until}, which is past: {one_line(entry.reason)}" for entry in expired]
    found += [
        f"accepted, but no item fails in this way: {cluster_about(entry)} ({one_line(entry.reason)})"
        for entry in summary.unused
    ]
    return found


def cluster_about(entry: Acceptance) -> str:
    """Describe the subject of an entry of the accepted list."""
    what = entry.signature or entry.family or entry.cause or ""
    return one_line(f"{what} {entry.items or ''}".strip())


def cluster_cause(cluster: Cluster | Gone) -> str:
    """The cause, or ``unknown``."""
    return cluster.cause or "unknown"


def cluster_title(cluster: Cluster) -> str:
    """Describe the failure, without its cause."""
    text = cluster.title or (f"fails in {cluster.stage}" if cluster.stage else "fails; its cause is unknown")
    return one_line(text, 300)


def cluster_change(cluster: Cluster) -> str:
    """The change against the baseline, and whether it is accepted."""
    change = cluster.change
    if cluster.change == CHANGED:
        change = f"changed, {cluster.before} before"
    if cluster.regressed:
        change += f", {cluster.regressed} healthy before"
    if cluster.is_accepted and cluster.accepted is not None:
        change += f"{', ' if change else ''}accepted until {cluster.accepted.until}"
    return change


def trait_text(item: Trait) -> str:
    """``host_isa is avx2: 6 of 6 here, 10 of 40 healthy``."""
    name = f"{one_line(item.feature)} {item.relation} {one_line(item.value)}"
    return f"{name}: {item.inside:,} of {item.of_inside:,} here, {item.healthy:,} of {item.of_healthy:,} healthy"


def example_text(item: Example, limit: int = 300) -> str:
    """The name of an item, and its host where that is another one than judged it."""
    return one_line(item.name if item.host == HERE else f"{item.name} on {item.host}", limit)


def cluster_rows(cluster: Cluster, number: int) -> tuple[str, ...]:
    """The cells of ``CLUSTERS``."""
    days = (cluster.first_seen[:10], cluster.last_seen[:10])
    return (
        str(number),
        f"{cluster.count:,}",
        cluster_cause(cluster),
        cluster_title(cluster),
        cluster_change(cluster),
        *days,
    )


def cluster_details(cluster: Cluster) -> list[tuple[str, str]]:
    """More of a cluster, labelled."""
    first = cluster.examples[0] if cluster.examples else None
    rows = [("For example", example_text(first))] if first else []
    if first is not None and first.report is not None:
        rows.append(("Report", one_line(f"{first.folder.rstrip('/')}/{first.report}", 300)))
    rows += [("Shares", trait_text(item)) for item in cluster.shared]
    rows += [("Lacks", trait_text(item)) for item in cluster.lacked]
    if cluster.accepted is not None:
        rows.append(("Accepted", one_line(f"until {cluster.accepted.until}: {cluster.accepted.reason}", 300)))
    rows.append(("Signature", one_line(cluster.key)))
    return rows


# For a terminal, through rich.
_MOST, _DETAILED, _PERIODS = 40, 8, 14


def fleet_terminal_text(summary: Overview, *, stream: TextIO, environ: Mapping[str, str], detail: int = 0) -> str:
    """``summary`` as ``stream`` can show it; ``detail`` -1 the first lines only, 0 normal, 1 all."""
    return capture_for_stream(lambda console: _render(summary, Layout(console), detail), stream=stream, environ=environ)


def plain_fleet_text(summary: Overview, *, width: int = 100, detail: int = 0) -> str:
    """``summary`` without colour at a fixed width."""
    return capture_plain(lambda console: _render(summary, Layout(console), detail), width=width)


def _render(summary: Overview, out: Layout, detail: int) -> None:
    head = fleet_verdict(summary)
    out.headline(head)
    if baseline := baseline_text(summary):
        out.paragraph(baseline, style="dim")
    for note in fleet_notes(summary):
        out.paragraph(note, style="dim")
    if detail < 0:
        return
    most = None if detail > 0 else _MOST
    clusters = [cluster_rows(cluster, number) for number, cluster in enumerate(summary.clusters, 1)]
    known = any(row[4] for row in clusters)
    listed = [row if known else (*row[:4], *row[5:]) for row in clusters[:most]]
    headings = CLUSTERS if known else (*CLUSTERS[:4], *CLUSTERS[5:])
    _table("Clusters", headings, listed, out, len(clusters) - len(listed))
    _show_details(summary.clusters, out, None if detail > 0 else _DETAILED)
    unexamined = [
        (one.ending, f"{one.count:,}", one_line(one.problem), one_line(one.examples[0].name))
        for one in summary.unexamined
    ]
    _table("Not examined", UNEXAMINED, unexamined, out)
    _show_timeline(summary, out, None if detail > 0 else _PERIODS)
    matrix = summary.matrix
    if len(matrix.hosts) >= 2 and matrix.causes:
        hosts = [
            (one_line(host), *(str(count or "") for count in counts), f"{total:,}")
            for host, counts, total in zip(matrix.hosts, matrix.counts, matrix.totals, strict=True)
        ]
        _table(
            "Hosts and causes", ("Host", *matrix.causes, "All items"), hosts[:most], out, len(hosts) - len(hosts[:most])
        )
    for name, found in (("Gone since the baseline", summary.gone), ("Seen before, not now", summary.past)):
        gone = [(cluster_cause(one), one_line(one.title), str(one.before), str(one.healthy)) for one in found]
        parts = gone[:most]
        _table(name, GONE, parts, out, len(gone) - len(parts))
    rows = [(one_line(one.name), one_line(one.host), f"{one.seconds:.2f}", one.state) for one in summary.slowest]
    _table("Slowest items", SLOWEST, rows if detail > 0 else rows[:3], out)
    out.blank()
    out.code(report_view.command_text(summary.argv), label=" Again: ")
    out.line(Text(f" aotidoctor {summary.version}, {summary.made}", style="dim"))


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], out: Layout, left: int = 0) -> None:
    if not rows:
        return
    out.title(title)
    out.table(headings, rows)
    if left > 0:
        out.more(f"{left:,} more")


def _show_details(found: Sequence[Cluster], out: Layout, most: int | None) -> None:
    if not found:
        return
    out.title("What sets them apart")
    out.paragraph(CORRELATION, style="dim")
    for number, cluster in enumerate(found[:most], 1):
        out.line(Text(f" {number}. {cluster_cause(cluster)}, {plural_of(cluster.count, 'item')}", style="bold"))
        before = ""
        for label, text in cluster_details(cluster):
            out.row("" if label == before else label, text, indent=3)
            before = label
    if most is not None and len(found) > most:
        out.more(f"{len(found) - most:,} more")


def _show_timeline(summary: Overview, out: Layout, most: int | None) -> None:
    line = summary.timeline
    if len(line.starts) < 2:
        return
    rows = [(start, *(str(counts[at] or "") for _, counts in line.series)) for at, start in enumerate(line.starts)]
    headings = (f"{line.unit.capitalize()} from", *(name for name, _ in line.series))
    parts = rows if most is None else rows[-most:]
    _table("Causes over time", headings, parts, out, len(rows) - len(parts))


def render_fleet_markdown(summary: Overview) -> str:
    """``summary`` as Markdown, shorter than GitHub's limit."""
    return fit_parts(partial(_parts, summary))


def _parts(summary: Overview, budget: Budget) -> list[str]:
    head = fleet_verdict(summary)
    lines = [f"## {head.word}: {prose(head.text, 400)}", ""]
    if baseline := baseline_text(summary):
        lines += [f"- {prose(baseline)}"]
    lines += [f"- {prose(note)}" for note in fleet_notes(summary)[: budget.rows]]
    rows = cells((cluster_rows(cluster, number) for number, cluster in enumerate(summary.clusters, 1)), budget)
    listed = summary.clusters[: min(budget.rows, 100)]
    unexamined = [
        (cell(one.ending), f"{one.count:,}", cell(one.problem, budget.cell), cell(one.examples[0].name, budget.cell))
        for one in summary.unexamined
    ]
    slowest = [
        (cell(one.name, budget.cell), cell(one.host), f"{one.seconds:.2f}", one.state) for one in summary.slowest
    ]
    gone = [
        (cell(cluster_cause(one)), cell(one.title, budget.cell), str(one.before), str(one.healthy))
        for one in summary.gone
    ]
    found = summary.matrix
    matrix = [
        (cell(host, budget.cell), *(str(count or "") for count in counts), f"{total:,}")
        for host, counts, total in zip(found.hosts, found.counts, found.totals, strict=True)
    ]
    line = summary.timeline
    timeline = [
        (start, *(str(counts[at]) for _, counts in line.series))
        for at, start in enumerate(line.starts)
        if any(counts[at] for _, counts in line.series)
    ]
    headings = (f"{line.unit.capitalize()} from", *(cell(name) for name, _ in line.series))
    return [
        "\n".join(lines).rstrip("\n"),
        section("Clusters", CLUSTERS, rows, budget),
        f"### What sets them apart\n\n{CORRELATION}" if listed else "",
        *(_details_markdown(number, cluster, budget) for number, cluster in enumerate(listed, 1)),
        section("Not examined", UNEXAMINED, unexamined, budget),
        section("Causes over time", headings, timeline[-budget.rows :], budget),
        section("Hosts and causes", ("Host", *(cell(name) for name in found.causes), "All items"), matrix, budget),
        section("Gone since the baseline", GONE, gone, budget),
        section("Slowest items", SLOWEST, slowest, budget),
        f"### Again\n\n{fence(report_view.command_text(summary.argv), language='sh', budget=4000)}",
        f"Made by aotidoctor {prose(summary.version)} at {summary.made}.",
    ]


def _details_markdown(number: int, cluster: Cluster, budget: Budget) -> str:
    rows = [f"- **{label}:** {code(text, 2 * budget.cell)}" for label, text in cluster_details(cluster)]
    return details(f"{number}. {cluster_cause(cluster)} ({plural_of(cluster.count, 'item')})", "\n".join(rows))


# One line for a chat.
_CAUSES = 4


def render_chat_line(summary: Overview) -> str:
    """One line that ends in a newline."""
    head = fleet_verdict(summary)
    parts = [f"{head.word}: {head.text}"]
    clusters = summary.news or summary.clusters
    counted: Counter[str] = Counter()
    for cluster in clusters:
        counted[cluster_cause(cluster)] += cluster.count
    if counted:
        named = list_names([f"{cause} {count:,}" for cause, count in counted.most_common()], _CAUSES)
        parts.append(f"({'new: ' if summary.news else ''}{named})")
    if summary.baseline and (summary.gone or summary.fixed):
        parts.append(f"gone: {len(summary.gone)}, fixed: {summary.fixed:,}")
    return one_line(prevent_links(" ".join(parts)), 500) + "\n"


# JSON.
_APART = ("argv", "version", "made", "clusters")


def render_fleet_json(summary: Overview) -> str:
    """``summary`` as one document that ends in a newline."""
    head = fleet_verdict(summary)
    rest = {name: value for name, value in record_json(summary).items() if name not in _APART}
    return dump_json(
        {
            "schema": SUMMARY_SCHEMA,
            "tool": {"name": "aotidoctor", "version": summary.version, "argv": summary.argv},
            "made": summary.made,
            "verdict": head.word.lower().replace(" ", "-"),
            "text": head.text,
            "news": [cluster.key for cluster in summary.news],
            "not_examined": summary.not_examined,
            "clusters": [_cluster_json(cluster) for cluster in summary.clusters],
            **rest,
        }
    )


def render_cluster_json(summary: Overview, cluster: Cluster) -> str:
    """One cluster alone: what a command that is called for it reads."""
    return dump_json(
        {
            "schema": SUMMARY_SCHEMA,
            "tool": {"name": "aotidoctor", "version": summary.version, "argv": summary.argv},
            **pick_fields(summary, "made folders baseline"),
            "cluster": _cluster_json(cluster),
        }
    )


def _cluster_json(cluster: Cluster) -> Mapping[str, object]:
    return {**record_json(cluster), **pick_fields(cluster, "is_accepted is_news")}


# CSV. What a spreadsheet takes for a formula, also after blanks, and in the wide letters of East Asia.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20|%]")
_LONGEST = 2000
_HEADINGS = tuple(item.name for item in fields(ItemRow))


def csv_cell(value: str | float) -> str:
    """``value`` as the text of a cell: on one line, and with an apostrophe before what would be calculated."""
    if not isinstance(value, str):
        return f"{value:g}"
    line = one_line(value, _LONGEST)
    return f"'{line}" if _FORMULA.match(line) else line


def render_items_csv(rows: Iterable[ItemRow]) -> Iterator[str]:
    """The lines of the document, the headings first."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(_HEADINGS)
    for row in rows:
        writer.writerow([csv_cell(getattr(row, name)) for name in _HEADINGS])
        if out.tell() > 1 << 16:
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()
