"""Summarize results folders: clusters of the same failure, what changed since a baseline, and rows of items.

    results folders ──► table ──► clusters, traits, timeline, hosts and causes ──► Overview
    baseline, accepted list ──────────────────────────────────────────────────────┘

Items are grouped by exact signature, clusters of one family side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

import pandas as pd

from aotidoctor.fleet.results import Damage, read_fleet, read_results
from aotidoctor.fleet.summary.accepted import covering_entry, unused_entries
from aotidoctor.fleet.summary.table import (
    FAILING,
    HEALTHY,
    UNEXAMINED,
    FleetTable,
    Traits,
    find_traits,
    item_key,
    read_table,
    state_of,
)
from aotidoctor.model.fleet import REPORTS_FOLDER
from aotidoctor.model.fleet_summary import (
    CHANGED,
    KNOWN,
    NEW,
    Acceptance,
    Cluster,
    DamagedFile,
    Example,
    Gone,
    ItemRow,
    Matrix,
    Overview,
    Slow,
    Timeline,
    Unexamined,
)
from aotidoctor.model.record import record
from aotidoctor.version import __version__

# Clusters.
_SUBJECTS, _HOSTS, _EXAMPLES = 3, 12, 10
MOST_CLUSTERS = 1_000
"""A fleet with more kinds of failure is shown by its largest; the others are counted."""


def cluster_keys(table: FleetTable) -> list[str]:
    """The clusters: families by their size, and within each the larger first."""
    failing = table.latest[table.latest["state"] == FAILING]
    sizes = failing.groupby(["family", "key"], observed=True).size().reset_index(name="count")
    sizes["of_family"] = sizes.groupby("family", observed=True)["count"].transform("sum")
    sizes.loc[sizes["family"] == "", "of_family"] = sizes["count"]
    ordered = sizes.astype({"family": "object", "key": "object"}).sort_values(
        ["of_family", "family", "count", "key"], ascending=[False, True, False, True]
    )
    return list(dict.fromkeys(str(key) for key in ordered["key"]))


def clusters(table: FleetTable, keys: Sequence[str], traits: Mapping[str, Traits]) -> tuple[Cluster, ...]:
    """The clusters ``keys`` in their order."""
    wanted = set(keys)
    latest = table.latest[table.latest["key"].isin(wanted)]
    now = {str(key): rows for key, rows in latest.groupby("key", observed=True)}
    lines = table.frame.loc[table.frame["key"].isin(wanted), ["key", "seen"]].astype({"seen": "object"})
    ever = lines.groupby("key", observed=True)["seen"].agg(["size", "min", "max"])
    seen = {str(row[0]): (int(row[1]), str(row[2]), str(row[3])) for row in ever.itertuples(name=None)}
    return tuple(_cluster(table, key, now[key], seen[key], traits.get(key, Traits())) for key in keys)


def _cluster(table: FleetTable, key: str, rows: pd.DataFrame, seen: tuple[int, str, str], traits: Traits) -> Cluster:
    # The item whose report is shown: one with a report, confirmed, and the latest of those.
    ranked = rows.reset_index(drop=True).sort_values(
        ["report", "confirmed", "seen", "name"], ascending=[False, False, False, True]
    )
    best = rows.iloc[int(str(ranked.index[0]))]
    examples = rows.drop(index=best.name).head(_EXAMPLES - 1)
    return Cluster(
        key=key,
        signature=str(best["signature"]) or None,
        family=str(best["family"]) or None,
        cause=None if best["cause"] == "unknown" else str(best["cause"]),
        title=str(best["title"]),
        stage=str(best["stage"]) or None,
        count=len(rows),
        seen=seen[0],
        first_seen=seen[1],
        last_seen=seen[2],
        confirmed=int(rows["confirmed"].sum()),
        subjects=_commonest(rows["subject"], _SUBJECTS),
        hosts=_commonest(rows["host"], _HOSTS),
        commands=_commonest(rows["command"], _HOSTS),
        examples=(_example(table, best), *(_example(table, row) for _, row in examples.iterrows())),
        shared=traits.shared,
        lacked=traits.lacked,
    )


def _commonest(column: pd.Series[str], most: int) -> tuple[str, ...]:
    counted = column.astype("object").value_counts()
    return tuple(str(value) for value in counted.index[:most] if value)


def _example(table: FleetTable, row: pd.Series[str]) -> Example:
    report = f"{REPORTS_FOLDER}/{row['item']}.json" if int(row["report"]) else None
    return Example(
        name=str(row["name"]), host=str(row["host"]), folder=table.folders[int(row["folder"])], report=report
    )


def unexamined_items(table: FleetTable) -> tuple[Unexamined, ...]:
    """Items without a verdict, by how they ended."""
    rows = table.latest[table.latest["state"] == UNEXAMINED]
    groups = [
        Unexamined(
            ending=str(ending),
            count=len(part),
            problem=next(iter(_commonest(part["problem"], 1)), ""),
            examples=tuple(_example(table, row) for _, row in part.head(_EXAMPLES).iterrows()),
        )
        for ending, part in rows.groupby("ending", observed=True)
    ]
    return tuple(sorted(groups, key=lambda group: -group.count))


# New, gone or changed since an older run: clusters by exact signature, items by state.
_MOST_GONE = 500


@dataclass(slots=True)
class Baseline:
    """An older run: ``items`` maps each item to its cluster, or to its state where it was not failing."""

    folder: str
    items: dict[str, str] = field(default_factory=dict)
    about: dict[str, tuple[str | None, str]] = field(default_factory=dict)
    damaged: tuple[DamagedFile, ...] = ()

    def counts(self) -> Counter[str]:
        """Items per cluster."""
        return Counter(key for key in self.items.values() if key not in (HEALTHY, UNEXAMINED))


def read_baseline(folder: str) -> Baseline:
    """The results in ``folder``. Raises CannotExamineError."""
    read_fleet(folder)
    found, damage = Baseline(folder=folder), Damage()
    known: dict[str, str] = {}
    for result in read_results(folder, damage):
        state = state_of(result)
        key = item_key(result) if state == FAILING else state
        key = known.setdefault(key, key)
        found.items[result.item] = key
        if state == FAILING:
            found.about.setdefault(key, (result.cause, result.title or ""))
    if damage.lines:
        found.damaged = (DamagedFile(folder=folder, lines=damage.lines, reasons=tuple(damage.reasons)),)
    return found


def new_clusters(table: FleetTable, base: Baseline) -> set[str]:
    """The clusters of ``table`` that ``base`` lacks, or that have items which were healthy there."""
    rows = table.latest
    old = base.counts()
    pairs = zip(rows["item"], rows["key"], strict=True)
    return {key for item, key in pairs if key and (key not in old or base.items.get(item) == HEALTHY)}


def compare_baseline(summary: Overview, table: FleetTable, base: Baseline) -> Overview:
    """``summary`` of ``table`` with what has changed since ``base``."""
    before, regressed, blind, cured = base.counts(), Counter[str](), Counter[str](), Counter[str]()
    added = fixed = 0
    there: set[str] = set()
    rows = table.latest
    now: set[str] = set()
    for item, state, key, ending in zip(rows["item"], rows["state"], rows["key"], rows["ending"], strict=True):
        was = base.items.get(item)
        there.add(item)
        now.add(key)
        if was is None:
            added += 1
        elif state == FAILING:
            regressed[key] += was == HEALTHY
        elif state == UNEXAMINED:
            blind[ending] += was != UNEXAMINED
        elif was not in (HEALTHY, UNEXAMINED):
            fixed += 1
            cured[was] += 1
    marked = []
    for cluster in summary.clusters:
        count = before.get(cluster.key)
        change = NEW if count is None else KNOWN if count == cluster.count else CHANGED
        marked.append(replace(cluster, change=change, before=count, regressed=regressed[cluster.key]))
    return replace(
        summary,
        clusters=tuple(marked),
        unexamined=tuple(replace(group, blind=blind[group.ending]) for group in summary.unexamined),
        gone=(
            tuple(
                Gone(key=key, cause=base.about[key][0], title=base.about[key][1], before=size, healthy=cured[key])
                for key, size in before.most_common()
                if key not in now
            )[:_MOST_GONE]
        ),
        added=added,
        removed=sum(item not in there for item in base.items),
        fixed=fixed,
        baseline=base.folder,
        damaged=(*summary.damaged, *base.damaged),
    )


def past_clusters(table: FleetTable) -> tuple[Gone, ...]:
    """The clusters of earlier folders that no item is in now."""
    now = {str(key) for key in table.latest["key"].unique()}
    rows = table.frame[~table.frame["key"].isin(now)]
    found = []
    for key, part in rows.groupby("key", observed=True):
        last = part.iloc[-1]
        healthy = table.latest["item"].isin(set(part["item"])) & (table.latest["state"] == HEALTHY)
        cause = None if last["cause"] == "unknown" else str(last["cause"])
        count = int(part["item"].nunique())
        found.append(
            Gone(key=str(key), cause=cause, title=str(last["title"]), before=count, healthy=int(healthy.sum()))
        )
    return tuple(sorted(found, key=lambda one: -one.before)[:_MOST_GONE])


# The overview.
_ORDER = {FAILING: 0, UNEXAMINED: 1, HEALTHY: 2}
# The columns that are texts in the row of an item.
_TEXTS = (
    "item", "name", "host", "command", "state", "cause", "subject", "title", "stage", "signature", "seen", "problem",
    "labels",
)  # fmt: skip


@record
class FleetOverview:
    """A summary with the table that it was made from. ``redact`` hides what is private in a row of it."""

    summary: Overview
    table: FleetTable
    redact: Callable[[ItemRow], ItemRow] = lambda row: row

    def rows(self) -> Iterator[ItemRow]:
        """The items: those that fail by cluster, then what was not examined, then the healthy ones."""
        numbers = {cluster.key: number for number, cluster in enumerate(self.summary.clusters, 1)}
        rows = self.table.latest
        cluster = rows["key"].astype("object").map(numbers).fillna(0).astype("int64")
        # Those of clusters that are not shown come after the others.
        place = cluster.where(cluster > 0, len(numbers) + 1)
        rank = rows["state"].astype("object").map(_ORDER)
        order = rows.assign(cluster=cluster, place=place, rank=rank)
        order = order.sort_values(["rank", "place", "name"], kind="stable")
        columns = (order[name] for name in (*_TEXTS, "cluster", "seconds", "report"))
        for *values, number, seconds, report in zip(*columns, strict=True):
            texts = dict(zip(_TEXTS, map(str, values), strict=True))
            path = f"{REPORTS_FOLDER}/{texts['item']}.json" if report else ""
            yield self.redact(ItemRow(**texts, cluster=int(number), seconds=float(seconds), report=path))


def summarize(
    folders: Sequence[str],
    *,
    baseline: Baseline | None = None,
    accepted: Sequence[Acceptance] = (),
    argv: tuple[str, ...] = (),
) -> FleetOverview:
    """Summarize the results in ``folders``. Raises CannotExamineError."""
    table = read_table(folders)
    every = cluster_keys(table)
    # What is new is never among those that are left out.
    first = new_clusters(table, baseline) if baseline is not None else set()
    chosen = set(sorted(every, key=lambda key: key not in first)[:MOST_CLUSTERS])
    keys = [key for key in every if key in chosen]
    found = clusters(table, keys, find_traits(table, keys))
    states = table.latest["state"].astype("object").value_counts()
    summary = Overview(
        folders=table.folders,
        items=len(table.latest),
        healthy=int(states.get(HEALTHY, 0)),
        failing=int(states.get(FAILING, 0)),
        clusters=found,
        more_clusters=len(every) - len(keys),
        unexamined=unexamined_items(table),
        timeline=timeline(table),
        matrix=matrix(table),
        slowest=slowest(table),
        damaged=table.damaged,
        unfinished=table.unfinished,
        expected=table.expected,
        unexpected=table.unexpected,
        argv=argv,
        version=__version__,
        made=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    if len(table.folders) > 1:
        summary = replace(summary, past=past_clusters(table))
    if baseline is not None:
        summary = compare_baseline(summary, table, baseline)
    return FleetOverview(summary=_mark_accepted(summary, table, accepted) if accepted else summary, table=table)


def _mark_accepted(summary: Overview, table: FleetTable, entries: Sequence[Acceptance]) -> Overview:
    names = {str(key): list(part) for key, part in table.latest.groupby("key", observed=True)["name"]}
    found = tuple(
        replace(
            cluster,
            accepted=covering_entry(
                entries,
                signature=cluster.signature,
                family=cluster.family,
                cause=cluster.cause or "unknown",
                names=names[cluster.key],
            ),
        )
        for cluster in summary.clusters
    )
    used = [cluster.accepted for cluster in found if cluster.accepted is not None]
    return replace(summary, clusters=found, unused=unused_entries(entries, used))


OTHERS = "other causes"
_SERIES, _PERIODS, _COLUMNS, _ROWS, _SLOW = 8, 120, 30, 200, 10
_HOUR = 3600.0
# The longest span (hours) that is shown by the hour, day and week.
_SPANS = ((72.0, "hour"), (24.0 * 92, "day"), (24.0 * 7 * 104, "week"))
_PANDAS = {"hour": "h", "day": "D", "week": "W-SUN", "month": "M"}


def timeline(table: FleetTable) -> Timeline:
    """The count of each cause, in periods that fit the span."""
    rows = table.frame[table.frame["state"] == FAILING]
    at = pd.to_datetime(rows["seen"], utc=True, errors="coerce", format="ISO8601").dropna().dt.tz_localize(None)
    if at.empty:
        return Timeline(unit="day", starts=(), series=())
    hours = (at.max() - at.min()).total_seconds() / _HOUR
    unit = next((name for most, name in _SPANS if hours <= most), "month")
    periods = at.dt.to_period(_PANDAS[unit])
    causes = rows.loc[at.index, "cause"].astype("object")
    common = causes.value_counts().index[:_SERIES]
    causes = causes.where(causes.isin(common), OTHERS)
    counted = pd.crosstab(periods, causes)
    whole = pd.period_range(counted.index.min(), counted.index.max(), freq=_PANDAS[unit])
    if len(whole) > _PERIODS:
        whole = whole[-_PERIODS:]
    counted = counted.reindex(whole, fill_value=0)
    order = [*(str(name) for name in common), *([OTHERS] if OTHERS in counted.columns else [])]
    form = "%Y-%m-%d %H:00" if unit == "hour" else "%Y-%m-%d"
    return Timeline(
        unit=unit,
        starts=tuple(period.start_time.strftime(form) for period in whole),
        series=tuple((name, tuple(int(count) for count in counted[name])) for name in order),
    )


def matrix(table: FleetTable) -> Matrix:
    """The present items by host and cause."""
    latest = table.latest
    totals = latest["host"].astype("object").value_counts()
    failing = latest[latest["state"] == FAILING]
    hosts = [str(host) for host in totals.index[:_ROWS]]
    causes = failing["cause"].astype("object")
    common = [str(cause) for cause in causes.value_counts().index]
    if len(common) > _COLUMNS:
        common = [*common[: _COLUMNS - 1], OTHERS]
        causes = causes.where(causes.isin(common), OTHERS)
    pairs = pd.DataFrame({"host": failing["host"].astype("object"), "cause": causes}).value_counts()
    counts = {(str(host), str(cause)): int(count) for (host, cause), count in pairs.items()}
    return Matrix(
        hosts=tuple(hosts),
        causes=tuple(common),
        counts=tuple(tuple(counts.get((host, cause), 0) for cause in common) for host in hosts),
        totals=tuple(int(totals[host]) for host in hosts),
    )


def slowest(table: FleetTable) -> tuple[Slow, ...]:
    """The items that took longest."""
    rows = table.latest.nlargest(_SLOW, "seconds")
    return tuple(
        Slow(name=str(row["name"]), host=str(row["host"]), seconds=float(row["seconds"]), state=str(row["state"]))
        for _, row in rows.iterrows()
    )
