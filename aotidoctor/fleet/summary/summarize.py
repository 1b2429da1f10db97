"""From results folders to one summary, and the rows of its items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone

import pandas as pd

from aotidoctor.fleet.summary.accepted import covering, unused
from aotidoctor.fleet.summary.baseline import Baseline, compared, news, past
from aotidoctor.fleet.summary.clusters import MOST_CLUSTERS, cluster_keys, clusters, unexamined
from aotidoctor.fleet.summary.table import FAILING, HEALTHY, UNEXAMINED, Table, read_table
from aotidoctor.fleet.summary.traits import find_traits
from aotidoctor.model.clusters import Acceptance, Cluster, ItemRow, Matrix, Overview, Slow, Timeline
from aotidoctor.model.fleet import REPORTS_FOLDER
from aotidoctor.model.record import record
from aotidoctor.version import __version__

_ORDER = {FAILING: 0, UNEXAMINED: 1, HEALTHY: 2}
# The columns that are texts in the row of an item.
_TEXTS = (
    "item", "name", "host", "command", "state", "cause", "subject", "title", "stage", "signature", "seen", "problem",
    "labels",
)  # fmt: skip


@record
class Fleet:
    """A summary with the table that it was made from."""

    summary: Overview
    table: Table

    def rows(self) -> Iterator[ItemRow]:
        """The items: those that fail by cluster, then what was not examined, then the healthy ones."""
        return _item_rows(self.table, self.summary.clusters)


def summarize(
    folders: Sequence[str],
    *,
    baseline: Baseline | None = None,
    accepted: Sequence[Acceptance] = (),
    argv: tuple[str, ...] = (),
) -> Fleet:
    """What the results in ``folders`` show together. Raises CannotExamineError."""
    table = read_table(folders)
    every = cluster_keys(table)
    # What is new is never among those that are left out.
    first = news(table, baseline) if baseline is not None else set()
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
        unexamined=unexamined(table),
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
        summary = replace(summary, past=past(table))
    if baseline is not None:
        summary = compared(summary, table, baseline)
    return Fleet(summary=_accepted(summary, table, accepted) if accepted else summary, table=table)


def _accepted(summary: Overview, table: Table, entries: Sequence[Acceptance]) -> Overview:
    names = {str(key): list(part) for key, part in table.latest.groupby("key", observed=True)["name"]}
    found = tuple(
        replace(
            cluster,
            accepted=covering(
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
    return replace(summary, clusters=found, unused=unused(entries, used))


def _item_rows(table: Table, found: Sequence[Cluster]) -> Iterator[ItemRow]:
    numbers = {cluster.key: number for number, cluster in enumerate(found, 1)}
    rows = table.latest
    cluster = rows["key"].astype("object").map(numbers).fillna(0).astype("int64")
    # Those of clusters that are not shown come after the others.
    place = cluster.where(cluster > 0, len(numbers) + 1)
    rank = rows["state"].astype("object").map(_ORDER)
    order = rows.assign(cluster=cluster, place=place, rank=rank)
    order = order.sort_values(["rank", "place", "name"], kind="stable")
    for *values, number, seconds, report in zip(
        *(order[name] for name in (*_TEXTS, "cluster", "seconds", "report")), strict=True
    ):
        texts = dict(zip(_TEXTS, map(str, values), strict=True))
        path = f"{REPORTS_FOLDER}/{texts['item']}.json" if report else ""
        yield ItemRow(**texts, cluster=int(number), seconds=float(seconds), report=path)


OTHERS = "other causes"
_SERIES, _PERIODS, _COLUMNS, _ROWS, _SLOW = 8, 120, 30, 200, 10
_HOUR = 3600.0
# The longest span (hours) that is shown by the hour, day and week.
_SPANS = ((72.0, "hour"), (24.0 * 92, "day"), (24.0 * 7 * 104, "week"))
_PANDAS = {"hour": "h", "day": "D", "week": "W-SUN", "month": "M"}


def timeline(table: Table) -> Timeline:
    """How often each cause was seen, in periods that fit the span."""
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


def matrix(table: Table) -> Matrix:
    """Items now by host and cause."""
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


def slowest(table: Table) -> tuple[Slow, ...]:
    """The items that took longest."""
    rows = table.latest.nlargest(_SLOW, "seconds")
    return tuple(
        Slow(name=str(row["name"]), host=str(row["host"]), seconds=float(row["seconds"]), state=str(row["state"]))
        for _, row in rows.iterrows()
    )
