"""Read all results folders into one table of pandas, and find features that set a cluster of failures apart.

The columns of the table hold each text once; features of items (labels and facts) are numbers in three flat arrays
beside it. A feature is shown where the shares among failing and healthy items differ by a quarter or more, and where
chance alone would make such a difference in less than one of a hundred fleets: Fisher's exact test, times the number of
features that were compared. A correlation is no cause.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import lru_cache
from itertools import islice

import pandas as pd

from aotidoctor.fleet.results import Damage, read_fleet, read_results
from aotidoctor.model.fleet import JUDGED, FleetResult
from aotidoctor.model.fleet_summary import HERE, DamagedFile, Trait
from aotidoctor.model.record import record

# The table.
HEALTHY, FAILING, UNEXAMINED = "healthy", "failing", "unexamined"
# Exit statuses of an examination that did not take place, and of one that was cut short.
_NOT_EXAMINED, _PARTIAL = (4, 5), (6, 130)
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ][\d:.]{5,18}(?:Z|[+-]\d{2}:\d{2})?)?", re.ASCII)
_LONGEST_VALUE, _LONGEST_TEXT = 200, 4000
_MOST_FEATURES, _LARGEST = 64, 1e18
# Text columns that repeat: pandas keeps each value once.
_REPEATED = (
    "host", "command", "state", "cause", "stage", "key", "signature", "family", "ending", "labels", "subject", "title",
    "problem", "seen",
)  # fmt: skip

# And those of which each line has its own.
_OWN = ("item", "name")


def state_of(result: FleetResult) -> str:
    """``healthy``, ``failing``, or ``unexamined``: then nothing is known of the package."""
    if result.is_healthy:
        return HEALTHY
    cut_short = result.status in _PARTIAL and result.cause is None
    return UNEXAMINED if result.ending != JUDGED or result.status in _NOT_EXAMINED or cut_short else FAILING


def item_key(result: FleetResult) -> str:
    """The cluster of a failing item; empty for others."""
    if state_of(result) != FAILING:
        return ""
    return result.signature or f"unsigned:{result.cause or result.verdict}:{result.stage or ''}"


@lru_cache(maxsize=4096)
def _moment(value: str) -> float | None:
    """The day of a date of RFC 3339, in seconds since the epoch; None for other texts."""
    found = _DATE.fullmatch(value)
    try:
        return datetime.fromisoformat(f"{found[1]}T00:00:00+00:00").timestamp() if found is not None else None
    except ValueError:
        return None


@dataclass(slots=True)
class Features:
    """Features of the rows: rows and ids side by side, and dates and numbers by feature."""

    names: dict[tuple[str, str], int] = field(default_factory=dict)
    rows: array[int] = field(default_factory=lambda: array("I"))
    ids: array[int] = field(default_factory=lambda: array("I"))
    ordered: dict[str, tuple[array[int], array[float]]] = field(default_factory=dict)
    dates: set[str] = field(default_factory=set)

    def add(self, row: int, result: FleetResult) -> None:
        """Note all features of ``result``, which is at ``row``."""
        self._word(row, "command", result.command)
        self._word(row, "host", result.host or HERE)
        for name, label in islice(result.labels.items(), _MOST_FEATURES):
            self._value(row, f"label {name[:_LONGEST_VALUE]}", label)
        for name, fact in islice(result.facts.items(), _MOST_FEATURES):
            self._value(row, name[:_LONGEST_VALUE], fact)
        if result.size is not None:
            self._number(row, "size", float(result.size))

    def _value(self, row: int, name: str, value: str | float | bool) -> None:
        match value:
            case bool():
                self._word(row, name, str(value).lower())
            case str():
                at = _moment(value)
                if at is None:
                    self._word(row, name, value)
                else:
                    self.dates.add(name)
                    self._number(row, name, at)
            case _ if -_LARGEST < value < _LARGEST:
                self._number(row, name, float(value))

    def _word(self, row: int, name: str, value: str) -> None:
        self.rows.append(row)
        self.ids.append(self.names.setdefault((name, value[:_LONGEST_VALUE]), len(self.names)))

    def _number(self, row: int, name: str, value: float) -> None:
        rows, values = self.ordered.setdefault(name, (array("I"), array("d")))
        rows.append(row)
        values.append(value)


@dataclass(slots=True)
class FleetTable:
    """``frame`` has a row per line; ``latest`` are the newest rows of each item."""

    frame: pd.DataFrame
    latest: pd.DataFrame
    features: Features
    folders: tuple[str, ...]
    damaged: tuple[DamagedFile, ...]
    unfinished: tuple[str, ...]
    expected: int
    unexpected: int


def read_table(folders: Sequence[str]) -> FleetTable:
    """The table of ``folders``, oldest first. Raises CannotExamineError."""
    runs = {folder: read_fleet(folder) for folder in folders}
    ordered = sorted(runs, key=lambda folder: runs[folder].started)
    columns, features, damaged = _Columns(), Features(), []
    for number, folder in enumerate(ordered):
        damage = Damage()
        for result in read_results(folder, damage):
            features.add(len(columns), result)
            columns.add(number, runs[folder].started, result)
        if damage.lines:
            damaged.append(DamagedFile(folder=folder, lines=damage.lines, reasons=tuple(damage.reasons)))
    # Not in the order in which the items were finished: neither examples nor what is commonest depend on that.
    frame = columns.frame().sort_values(["folder", "name", "item"])
    # One folder has each item once.
    latest = frame.drop_duplicates("item", keep="last") if len(ordered) > 1 else frame
    return FleetTable(
        frame=frame,
        latest=latest,
        features=features,
        folders=tuple(ordered),
        damaged=tuple(damaged),
        unfinished=tuple(folder for folder in ordered if not runs[folder].finished),
        expected=int(((latest["as_expected"] == 1) & (latest["state"] == FAILING)).sum()),
        unexpected=int((latest["as_expected"] == 0).sum()),
    )


class _Columns:
    """The columns of the table while they are filled; equal texts are one object."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._texts: dict[str, list[str]] = {name: [] for name in (*_OWN, *_REPEATED)}
        self._folder, self._seconds = array("I"), array("d")
        self._confirmed, self._report, self._as_expected = array("b"), array("b"), array("b")

    def __len__(self) -> int:
        return len(self._folder)

    def add(self, folder: int, run_started: str, result: FleetResult) -> None:
        state = state_of(result)
        for name, value in (
            {
                "item": result.item,
                "name": result.name,
                "host": result.host or HERE,
                "command": result.command,
                "state": state,
                "cause": (result.cause or "unknown") if state == FAILING else "",
                "stage": result.stage or "",
                "key": item_key(result),
                "signature": result.signature or "",
                "family": result.family or "",
                "ending": result.ending if result.ending != JUDGED else "unreadable",
                "subject": result.subject or "",
                "title": result.title or "",
                "problem": result.problem or "",
                # An answer out of the cache was true when the run looked it up.
                "seen": max(result.started, run_started),
                "labels": "; ".join(f"{name}={value}" for name, value in sorted(result.labels.items())),
            }
        ).items():
            # pandas hashes texts as UTF-8, which has no half of a surrogate pair.
            short = value[:_LONGEST_TEXT]
            sound = short if short.isascii() else short.encode("utf-8", "replace").decode()
            self._texts[name].append(sound if name in _OWN else self._known.setdefault(sound, sound))
        self._folder.append(folder)
        self._seconds.append(result.seconds)
        self._confirmed.append(result.cause_status == "confirmed")
        self._report.append(result.report is not None)
        self._as_expected.append(-1 if result.as_expected is None else int(result.as_expected))

    def frame(self) -> pd.DataFrame:
        self._known.clear()
        columns: dict[str, pd.Series[str] | pd.Series[int] | pd.Series[float]] = {}
        for name in list(self._texts):
            # One by one, so that no column is there twice for long.
            texts = self._texts.pop(name)
            columns[name] = pd.Series(texts, dtype="category" if name in _REPEATED else "object")
        columns["folder"] = pd.Series(self._folder, dtype="int32")
        columns["seconds"] = pd.Series(self._seconds, dtype="float64")
        columns["confirmed"] = pd.Series(self._confirmed, dtype="int8")
        columns["report"] = pd.Series(self._report, dtype="int8")
        columns["as_expected"] = pd.Series(self._as_expected, dtype="int8")
        found: pd.DataFrame = pd.DataFrame(columns)
        return found


# Features of clusters.
FEWEST = 3
"""What fewer items have in common may be chance."""
LEAST_DIFFERENCE, LEAST_SURE = 0.25, 0.01
MOST = 6
_CHUNK = 100_000


@record
class Traits:
    """Features that a cluster has more often than the healthy items, and those it has less often."""

    shared: tuple[Trait, ...] = ()
    lacked: tuple[Trait, ...] = ()


def find_traits(table: FleetTable, keys: Sequence[str]) -> Mapping[str, Traits]:
    """The traits of each cluster of ``keys``; none without healthy items to compare with."""
    groups = table.latest["key"].astype("object").where(table.latest["state"] != HEALTHY, HEALTHY)
    sizes: dict[str, int] = {str(name): int(count) for name, count in groups.value_counts().items()}
    wanted = [key for key in keys if sizes.get(key, 0) >= FEWEST]
    if sizes.get(HEALTHY, 0) < FEWEST or not wanted:
        return {}
    groups = groups[groups.isin({*wanted, HEALTHY})]
    found: dict[str, list[Trait]] = {key: [] for key in wanted}
    for key, trait in (*_words(table, groups, wanted), *_numbers(table, groups, wanted)):
        found[key].append(trait)
    return {key: _significant(traits) for key, traits in found.items()}


def _significant(traits: Sequence[Trait]) -> Traits:
    sure = [replace(trait, chance=min(1.0, trait.chance * len(traits))) for trait in traits]
    kept = [trait for trait in sure if trait.chance < LEAST_SURE and abs(share_difference(trait)) >= LEAST_DIFFERENCE]
    kept.sort(key=lambda trait: (-abs(share_difference(trait)), trait.chance, trait.feature, trait.value))
    return Traits(
        shared=tuple(trait for trait in kept if share_difference(trait) > 0)[:MOST],
        lacked=tuple(trait for trait in kept if share_difference(trait) < 0)[:MOST],
    )


def share_difference(trait: Trait) -> float:
    """The share in the cluster less that among the healthy, -1..1."""
    return trait.inside / trait.of_inside - trait.healthy / trait.of_healthy


def _words(table: FleetTable, groups: pd.Series[str], keys: Sequence[str]) -> Iterator[tuple[str, Trait]]:
    """Features that are a word, such as a host."""
    names = [*table.features.names]
    counts = _count_features(table, groups)
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


def _count_features(table: FleetTable, groups: pd.Series[str]) -> Counter[tuple[str, int]]:
    """The number of items of each group with each feature. A part of the rows at a time, so that memory stays flat."""
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


def _numbers(table: FleetTable, groups: pd.Series[str], keys: Sequence[str]) -> Iterator[tuple[str, Trait]]:
    """Features with an order, such as a date: the bound that all of a cluster keep."""
    for name, (rows, values) in table.features.ordered.items():
        # Beside each other by place: pandas would look for the rows among the places of the values.
        column = pd.DataFrame({"row": pd.Series(rows), "value": pd.Series(values)})
        column = column[column["row"].isin(groups.index)]
        column = column.assign(group=groups.loc[column["row"]].to_numpy())
        by_group = {str(group): sorted(part["value"].tolist()) for group, part in column.groupby("group")}
        healthy = by_group.get(HEALTHY, [])
        for key in keys:
            inside = by_group.get(key, [])
            if min(len(inside), len(healthy)) < FEWEST:
                continue
            above, below = len(healthy) - bisect_left(healthy, inside[0]), bisect_right(healthy, inside[-1])
            whole = (len(inside), len(inside))
            is_date = name in table.features.dates
            yield key, _trait(name, _feature_text(inside[0], is_date), "from", whole, (above, len(healthy)))
            yield key, _trait(name, _feature_text(inside[-1], is_date), "up to", whole, (below, len(healthy)))


def _feature_text(value: float, is_date: bool) -> str:
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
