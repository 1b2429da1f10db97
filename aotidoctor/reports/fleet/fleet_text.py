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
from itertools import islice
from typing import TextIO

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
from aotidoctor.model.record import values_of
from aotidoctor.reports.json.json_report import dump_json, pick_fields
from aotidoctor.reports.markdown import Budget, fit_parts, prevent_links, prose, section_parts
from aotidoctor.reports.page import report_view
from aotidoctor.reports.page.blocks import (
    TERMINAL,
    Block,
    CommandBlock,
    Folded,
    NoteBlock,
    PageSection,
    Pairs,
    Span,
    TableBlock,
    text_lines,
)
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


# The page, for a terminal and as Markdown.
_MOST, _DETAILED, _PERIODS = 40, 8, 14


def fleet_terminal_text(summary: Overview, *, stream: TextIO, environ: Mapping[str, str], detail: int = 0) -> str:
    """``summary`` as ``stream`` can show it; ``detail`` -1 the first lines only, 0 normal, 1 all."""
    from aotidoctor.reports.terminal.terminal_layout import sections_text

    sections = islice(fleet_sections(summary, detail), 1 if detail < 0 else None)
    return sections_text(sections, stream=stream, environ=environ, first=fleet_verdict(summary))


def render_fleet_markdown(summary: Overview) -> str:
    """``summary`` as Markdown, shorter than GitHub's limit."""
    return fit_parts(partial(_parts, summary))


def _parts(summary: Overview, budget: Budget) -> list[str]:
    head = fleet_verdict(summary)
    parts = [part for one in fleet_sections(summary, 1) for part in section_parts(one, budget)]
    return [f"## {head.word}: {prose(head.text, 400)}", *parts]


def fleet_sections(summary: Overview, detail: int) -> Iterator[PageSection]:
    """The sections of the page; the first one are notes without a title."""
    most = None if detail > 0 else _MOST
    notes = [text for text in (baseline_text(summary), *fleet_notes(summary)) if text]
    yield PageSection(id="notes", title="", blocks=tuple(NoteBlock(words=text, tone="dim") for text in notes))
    clusters = [cluster_rows(cluster, number) for number, cluster in enumerate(summary.clusters, 1)]
    yield from _rows("Clusters", CLUSTERS, clusters, most)
    if summary.clusters:
        yield _details(summary.clusters, None if detail > 0 else _DETAILED)
    unexamined = [(one.ending, f"{one.count:,}", one.problem, one.examples[0].name) for one in summary.unexamined]
    yield from _rows("Not examined", UNEXAMINED, unexamined)
    line = summary.timeline
    headings = (f"{line.unit.capitalize()} from", *(name for name, _ in line.series))
    periods = [(start, *(str(counts[at] or "") for _, counts in line.series)) for at, start in enumerate(line.starts)]
    if len(periods) > 1:
        # The latest matter.
        latest = periods if detail > 0 else periods[-_PERIODS:]
        yield from _rows("Causes over time", headings, latest, left=len(periods) - len(latest))
    found = summary.matrix
    hosts = [
        (host, *(str(count or "") for count in counts), f"{total:,}")
        for host, counts, total in zip(found.hosts, found.counts, found.totals, strict=True)
    ]
    if len(hosts) > 1 and found.causes:
        yield from _rows("Hosts and causes", ("Host", *found.causes, "All items"), hosts, most)
    for title, gone in (("Gone since the baseline", summary.gone), ("Seen before, not now", summary.past)):
        rows = [(cluster_cause(one), one.title, str(one.before), str(one.healthy)) for one in gone]
        yield from _rows(title, GONE, rows, most)
    slowest = [(one.name, one.host, f"{one.seconds:.2f}", one.state) for one in summary.slowest]
    yield from _rows("Slowest items", SLOWEST, slowest[: None if detail > 0 else 3])
    made = f"Made by aotidoctor {summary.version} at {summary.made}."
    command = CommandBlock(text=report_view.command_text(summary.argv))
    yield PageSection(id="again", title="Again", blocks=(command, NoteBlock(words=made, tone="dim")))


def _rows(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], most: int | None = None, *, left: int = 0
) -> Iterator[PageSection]:
    """A section of one table; nothing for nothing."""
    listed = rows[:most]
    left += len(rows) - len(listed)
    table = TableBlock(
        label=title,
        headings=tuple(headings),
        rows=text_lines(listed),
        sparse=True,
        more=f"{left:,} more" if left else "",
    )
    if rows:
        yield PageSection(id="", title=title, blocks=(table,))


def _details(found: Sequence[Cluster], most: int | None) -> PageSection:
    """What sets each cluster apart."""
    blocks: list[Block] = [NoteBlock(words=CORRELATION, tone="dim")]
    for number, cluster in enumerate(found[:most], 1):
        title = f"{number}. {cluster_cause(cluster)}, {plural_of(cluster.count, 'item')}"
        blocks.append(Folded(summary=(Span(title, "bold"),), blocks=(Pairs(rows=cluster_details(cluster)),)))
    if most is not None and len(found) > most:
        blocks.append(NoteBlock(words=f"and {len(found) - most:,} more (-v shows all)", tone="dim", formats=TERMINAL))
    return PageSection(id="details", title="What sets them apart", blocks=tuple(blocks))


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
    rest = {name: value for name, value in values_of(summary).items() if name not in _APART}
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
    return {**values_of(cluster), **pick_fields(cluster, "is_accepted is_news")}


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
