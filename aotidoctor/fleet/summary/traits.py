"""Which features set a cluster apart from the healthy items, with numbers. A correlation is no cause.

A feature is shown where the shares differ by a quarter or more, and where chance alone would make such a difference in
less than one of a hundred fleets: Fisher's exact test, times the number of features that were compared.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

import pandas as pd

from aotidoctor.fleet.summary.table import HEALTHY, Table
from aotidoctor.model.clusters import Trait
from aotidoctor.model.record import record

FEWEST = 3
"""Of fewer items nothing is common that could not be chance."""
LEAST_DIFFERENCE, LEAST_SURE = 0.25, 0.01
MOST = 6
_CHUNK = 100_000


@record
class Traits:
    """What a cluster has more often than the healthy items, and what it has less often."""

    shared: tuple[Trait, ...] = ()
    lacked: tuple[Trait, ...] = ()


def find_traits(table: Table, keys: Sequence[str]) -> Mapping[str, Traits]:
    """Of each cluster of ``keys`` its traits; none without healthy items to compare with."""
    groups = table.latest["key"].astype("object").where(table.latest["state"] != HEALTHY, HEALTHY)
    sizes: dict[str, int] = {str(name): int(count) for name, count in groups.value_counts().items()}
    wanted = [key for key in keys if sizes.get(key, 0) >= FEWEST]
    if sizes.get(HEALTHY, 0) < FEWEST or not wanted:
        return {}
    groups = groups[groups.isin({*wanted, HEALTHY})]
    found: dict[str, list[Trait]] = {key: [] for key in wanted}
    for key, trait in (*_words(table, groups, wanted), *_numbers(table, groups, wanted)):
        found[key].append(trait)
    return {key: _chosen(traits) for key, traits in found.items()}


def _chosen(traits: Sequence[Trait]) -> Traits:
    sure = [replace(trait, chance=min(1.0, trait.chance * len(traits))) for trait in traits]
    kept = [trait for trait in sure if trait.chance < LEAST_SURE and abs(difference(trait)) >= LEAST_DIFFERENCE]
    kept.sort(key=lambda trait: (-abs(difference(trait)), trait.chance, trait.feature, trait.value))
    return Traits(
        shared=tuple(trait for trait in kept if difference(trait) > 0)[:MOST],
        lacked=tuple(trait for trait in kept if difference(trait) < 0)[:MOST],
    )


def difference(trait: Trait) -> float:
    """The share in the cluster less that among the healthy, -1..1."""
    return trait.inside / trait.of_inside - trait.healthy / trait.of_healthy


def _words(table: Table, groups: pd.Series[str], keys: Sequence[str]) -> Iterator[tuple[str, Trait]]:
    """Features that are a word, such as a host."""
    names = [*table.features.names]
    counts = _counted(table, groups)
    totals: Counter[tuple[str, str]] = Counter()
    for (group, number), count in counts.items():
        totals[group, names[number][0]] += count
    usual = {number for (group, number), count in counts.items() if group == HEALTHY and count >= FEWEST}
    for key in keys:
        own = {number for (group, number), count in counts.items() if group == key and count >= FEWEST}
        for number in sorted(own | usual):
            name, value = names[number]
            of_inside, of_healthy = totals.get((key, name), 0), totals.get((HEALTHY, name), 0)
            if min(of_inside, of_healthy) >= FEWEST:
                inside, healthy = counts.get((key, number), 0), counts.get((HEALTHY, number), 0)
                yield key, _trait(name, value, "is", (inside, of_inside), (healthy, of_healthy))


def _counted(table: Table, groups: pd.Series[str]) -> Counter[tuple[str, int]]:
    """How many items of each group have each feature. A part of the rows at a time, so that memory stays flat."""
    counts: Counter[tuple[str, int]] = Counter()
    kept = groups.astype("category")
    for start in range(0, len(table.features.rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        rows = pd.DataFrame({"row": pd.Series(table.features.rows[part]), "id": pd.Series(table.features.ids[part])})
        rows = rows[rows["row"].isin(kept.index)]
        rows = rows.assign(group=kept.loc[rows["row"]].array)
        for (group, number), count in rows.groupby(["group", "id"], observed=True).size().items():
            counts[str(group), int(number)] += int(count)
    return counts


def _numbers(table: Table, groups: pd.Series[str], keys: Sequence[str]) -> Iterator[tuple[str, Trait]]:
    """Features with an order, such as a date: the bound that all of a cluster keep."""
    for name, (rows, values) in table.features.ordered.items():
        column = pd.DataFrame({"value": pd.Series(values)}, index=pd.Index(rows))
        column = column[column.index.isin(groups.index)]
        column = column.assign(group=groups.loc[column.index].to_numpy())
        by_group = {str(group): sorted(part["value"].tolist()) for group, part in column.groupby("group")}
        healthy = by_group.get(HEALTHY, [])
        for key in keys:
            inside = by_group.get(key, [])
            if min(len(inside), len(healthy)) < FEWEST:
                continue
            above, below = len(healthy) - bisect_left(healthy, inside[0]), bisect_right(healthy, inside[-1])
            whole = (len(inside), len(inside))
            is_date = name in table.features.dates
            yield key, _trait(name, _shown(inside[0], is_date), "from", whole, (above, len(healthy)))
            yield key, _trait(name, _shown(inside[-1], is_date), "up to", whole, (below, len(healthy)))


def _shown(value: float, is_date: bool) -> str:
    if is_date:
        return datetime.fromtimestamp(value, timezone.utc).strftime("%Y-%m-%d")
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _trait(name: str, value: str, relation: str, here: tuple[int, int], healthy: tuple[int, int]) -> Trait:
    return Trait(
        feature=name,
        value=value,
        relation=relation,
        inside=here[0],
        of_inside=here[1],
        healthy=healthy[0],
        of_healthy=healthy[1],
        chance=by_chance(*here, *healthy),
    )


def by_chance(inside: int, of_inside: int, healthy: int, of_healthy: int) -> float:
    """The probability of a share as far from the healthy one if the feature were dealt out at random.

    Fisher's exact test, one-sided, on the side where the share is.
    """
    total, having = of_inside + of_healthy, inside + healthy
    more = inside * of_healthy >= healthy * of_inside
    tail = range(inside, min(of_inside, having) + 1) if more else range(max(0, having - of_healthy), inside + 1)
    whole = _log_choose(total, of_inside)
    return min(
        1.0, sum(math.exp(_log_choose(having, k) + _log_choose(total - having, of_inside - k) - whole) for k in tail)
    )


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
