"""What every format says of a fleet, as values: the words are here, the layout is in the formats."""

from __future__ import annotations

from aotidoctor.model.clusters import CHANGED, HERE, NEW, Acceptance, Cluster, Example, Gone, Overview, Trait
from aotidoctor.model.phrases import plural
from aotidoctor.reports.text import one_line
from aotidoctor.reports.tones import Headline

CORRELATION = (
    "Features that separate a cluster from the healthy items. They are correlations, and need not be the cause."
)
CLUSTERS = ("#", "Items", "Cause", "What", "Change", "First seen", "Last seen")
UNEXAMINED = ("Ended", "Items", "Reason", "For example")
GONE = ("Cause", "What", "Items before", "Healthy now")
SLOWEST = ("Item", "Host", "Seconds", "State")


def verdict(summary: Overview) -> Headline:
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
        told = [plural_of(new, "new cluster")] if new else []
        told += [f"{plural_of(regressed, 'item')} healthy before"] if regressed else []
        return Headline("NEW", f"{' and '.join(told)}; {text}", "bad")
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


def against(summary: Overview) -> str:
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
    return f"against {one_line(summary.baseline, 200)}: " + ", ".join(parts)


def notes(summary: Overview) -> list[str]:
    """What a reader must know of the data: what is damaged, unfinished, not as expected, or out of date."""
    found = [
        f"{one_line(item.folder, 200)}: {plural_of(item.lines, 'line')} could not be read: "
        + one_line("; ".join(item.reasons), 300)
        for item in summary.damaged
    ]
    found += [f"{one_line(folder, 200)}: the run has not finished; items are missing" for folder in summary.unfinished]
    if summary.more_clusters:
        found.append(f"{plural_of(summary.more_clusters, 'smaller cluster')} not shown; their items are in the CSV")
    if summary.expected:
        found.append(f"{plural_of(summary.expected, 'item')} failing as the manifest expects")
    if summary.unexpected:
        found.append(f"{plural_of(summary.unexpected, 'item')} not as the manifest expects")
    expired = [cluster.accepted for cluster in summary.clusters if cluster.accepted and cluster.accepted.expired]
    found += [f"accepted until {entry.until}, which is past: {one_line(entry.reason, 200)}" for entry in expired]
    found += [
        f"accepted, but no item fails in this way: {about(entry)} ({one_line(entry.reason, 200)})"
        for entry in summary.unused
    ]
    return found


def about(entry: Acceptance) -> str:
    """What an entry of the accepted list is about."""
    what = entry.signature or entry.family or entry.cause or ""
    return one_line(f"{what} {entry.items or ''}".strip(), 200)


def cause(cluster: Cluster | Gone) -> str:
    """The cause, or ``unknown``."""
    return cluster.cause or "unknown"


def title(cluster: Cluster) -> str:
    """What fails, without the cause before it."""
    text = cluster.title or (f"fails in {cluster.stage}" if cluster.stage else "fails; its cause is unknown")
    return one_line(text, 300)


def change(cluster: Cluster) -> str:
    """The change against the baseline, and whether it is accepted."""
    told = cluster.change
    if cluster.change == CHANGED:
        told = f"changed, {cluster.before} before"
    if cluster.regressed:
        told += f", {cluster.regressed} healthy before"
    if cluster.is_accepted and cluster.accepted is not None:
        told += f"{', ' if told else ''}accepted until {cluster.accepted.until}"
    return told


def trait(item: Trait) -> str:
    """``host_isa is avx2: 6 of 6 here, 10 of 40 healthy``."""
    name = f"{one_line(item.feature, 80)} {item.relation} {one_line(item.value, 120)}"
    return f"{name}: {item.inside:,} of {item.of_inside:,} here, {item.healthy:,} of {item.of_healthy:,} healthy"


def example(item: Example, limit: int = 300) -> str:
    """The name of an item, and its host where that is another one than judged it."""
    return one_line(item.name if item.host == HERE else f"{item.name} on {item.host}", limit)


def cluster_rows(cluster: Cluster, number: int) -> tuple[str, ...]:
    """The cells of ``CLUSTERS``."""
    days = (cluster.first_seen[:10], cluster.last_seen[:10])
    return (str(number), f"{cluster.count:,}", cause(cluster), title(cluster), change(cluster), *days)


def details(cluster: Cluster) -> list[tuple[str, str]]:
    """More of a cluster, labelled."""
    first = cluster.examples[0] if cluster.examples else None
    rows = [("For example", example(first))] if first else []
    if first is not None and first.report is not None:
        rows.append(("Report", one_line(f"{first.folder.rstrip('/')}/{first.report}", 300)))
    rows += [("Shares", trait(item)) for item in cluster.shared]
    rows += [("Lacks", trait(item)) for item in cluster.lacked]
    if cluster.accepted is not None:
        rows.append(("Accepted", one_line(f"until {cluster.accepted.until}: {cluster.accepted.reason}", 300)))
    rows.append(("Signature", one_line(cluster.key, 200)))
    return rows
