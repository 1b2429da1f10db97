"""What is new, gone or changed since an older run: clusters by their exact signature, items by what they were."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from aotidoctor.fleet.results import Damage, read_fleet, read_results
from aotidoctor.fleet.summary.table import FAILING, HEALTHY, UNEXAMINED, Table, key_of, state_of
from aotidoctor.model.clusters import CHANGED, KNOWN, NEW, Cluster, DamagedFile, Gone, Overview

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
        key = key_of(result) if state == FAILING else state
        key = known.setdefault(key, key)
        found.items[result.item] = key
        if state == FAILING:
            found.about.setdefault(key, (result.cause, result.title or ""))
    if damage.lines:
        found.damaged = (DamagedFile(folder=folder, lines=damage.lines, reasons=tuple(damage.reasons)),)
    return found


def news(table: Table, base: Baseline) -> set[str]:
    """The clusters of ``table`` that ``base`` lacks, or that have items which were healthy there."""
    rows = table.latest
    old = base.counts()
    pairs = zip(rows["item"], rows["key"], strict=True)
    return {key for item, key in pairs if key and (key not in old or base.items.get(item) == HEALTHY)}


def compared(summary: Overview, table: Table, base: Baseline) -> Overview:
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
    return replace(
        summary,
        clusters=tuple(_changed(cluster, before, regressed[cluster.key]) for cluster in summary.clusters),
        unexamined=tuple(replace(group, blind=blind[group.ending]) for group in summary.unexamined),
        gone=_gone(base, before, now, cured),
        added=added,
        removed=sum(item not in there for item in base.items),
        fixed=fixed,
        baseline=base.folder,
        damaged=(*summary.damaged, *base.damaged),
    )


def _changed(cluster: Cluster, before: Counter[str], regressed: int) -> Cluster:
    count = before.get(cluster.key)
    change = NEW if count is None else KNOWN if count == cluster.count else CHANGED
    return replace(cluster, change=change, before=count, regressed=regressed)


def _gone(base: Baseline, before: Counter[str], now: set[str], cured: Counter[str]) -> tuple[Gone, ...]:
    return tuple(
        Gone(key=key, cause=base.about[key][0], title=base.about[key][1], before=count, healthy=cured[key])
        for key, count in before.most_common()
        if key not in now
    )[:_MOST_GONE]


def past(table: Table) -> tuple[Gone, ...]:
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
