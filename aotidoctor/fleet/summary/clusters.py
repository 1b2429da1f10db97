"""Items that fail in the same way: grouped by exact signature, those of one family side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from aotidoctor.fleet.summary.table import FAILING, UNEXAMINED, Table
from aotidoctor.fleet.summary.traits import Traits
from aotidoctor.model.clusters import Cluster, Example, Unexamined
from aotidoctor.model.fleet import REPORTS_FOLDER

_SUBJECTS, _HOSTS, _EXAMPLES = 3, 12, 10
MOST_CLUSTERS = 1_000
"""A fleet with more kinds of failure is shown by its largest; the others are counted."""


def cluster_keys(table: Table) -> list[str]:
    """The clusters: families by their size, and within each the larger first."""
    failing = table.latest[table.latest["state"] == FAILING]
    sizes = failing.groupby(["family", "key"], observed=True).size().reset_index(name="count")
    sizes["of_family"] = sizes.groupby("family", observed=True)["count"].transform("sum")
    sizes.loc[sizes["family"] == "", "of_family"] = sizes["count"]
    ordered = sizes.astype({"family": "object", "key": "object"}).sort_values(
        ["of_family", "family", "count", "key"], ascending=[False, True, False, True]
    )
    return list(dict.fromkeys(str(key) for key in ordered["key"]))


def clusters(table: Table, keys: Sequence[str], traits: Mapping[str, Traits]) -> tuple[Cluster, ...]:
    """The clusters ``keys`` in their order."""
    wanted = set(keys)
    latest = table.latest[table.latest["key"].isin(wanted)]
    now = {str(key): rows for key, rows in latest.groupby("key", observed=True)}
    lines = table.frame.loc[table.frame["key"].isin(wanted), ["key", "seen"]].astype({"seen": "object"})
    ever = lines.groupby("key", observed=True)["seen"].agg(["size", "min", "max"])
    seen = {str(row[0]): (int(row[1]), str(row[2]), str(row[3])) for row in ever.itertuples(name=None)}
    return tuple(_cluster(table, key, now[key], seen[key], traits.get(key, Traits())) for key in keys)


def _cluster(table: Table, key: str, rows: pd.DataFrame, seen: tuple[int, str, str], traits: Traits) -> Cluster:
    best = rows.iloc[_representative(rows)]
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


def _representative(rows: pd.DataFrame) -> int:
    """The place of the item whose report is shown: one with a report, confirmed, and the latest of those."""
    ranked = rows.reset_index(drop=True).sort_values(
        ["report", "confirmed", "seen", "name"], ascending=[False, False, False, True]
    )
    return int(str(ranked.index[0]))


def _commonest(column: pd.Series[str], most: int) -> tuple[str, ...]:
    counted = column.astype("object").value_counts()
    return tuple(str(value) for value in counted.index[:most] if value)


def _example(table: Table, row: pd.Series[str]) -> Example:
    report = f"{REPORTS_FOLDER}/{row['item']}.json" if int(row["report"]) else None
    return Example(
        name=str(row["name"]), host=str(row["host"]), folder=table.folders[int(row["folder"])], report=report
    )


def unexamined(table: Table) -> tuple[Unexamined, ...]:
    """What nothing is known of, by how it ended."""
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
