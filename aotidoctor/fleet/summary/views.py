"""Causes over time, hosts against causes, and the slowest items."""

from __future__ import annotations

import pandas as pd

from aotidoctor.fleet.summary.table import FAILING, Table
from aotidoctor.model.clusters import Matrix, Slow, Timeline

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
