"""All lines of all folders as one table of pandas, in a few bytes per line.

The columns hold each text once; features of items (labels and facts) are numbers in three flat arrays beside it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import islice

from aotidoctor.fleet.results import Damage, read_fleet, read_results
from aotidoctor.model.clusters import HERE, DamagedFile
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.fleet import JUDGED, FleetResult

try:
    import pandas as pd
except ImportError as error:  # the message names the extra
    raise CannotExamineError("the tables of a fleet need pandas: pip install 'aotidoctor[fleet]'") from error

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
    """``healthy``, ``failing``, or ``unexamined``: then nothing is said of the package."""
    if result.is_healthy:
        return HEALTHY
    cut_short = result.status in _PARTIAL and result.cause is None
    return UNEXAMINED if result.ending != JUDGED or result.status in _NOT_EXAMINED or cut_short else FAILING


def key_of(result: FleetResult) -> str:
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
    """Which row has which feature: rows and ids side by side, and dates and numbers by feature."""

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
class Table:
    """``frame`` has a row per line; ``latest`` are the rows that say what each item is now."""

    frame: pd.DataFrame
    latest: pd.DataFrame
    features: Features
    folders: tuple[str, ...]
    damaged: tuple[DamagedFile, ...]
    unfinished: tuple[str, ...]
    expected: int
    unexpected: int


def read_table(folders: Sequence[str]) -> Table:
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
    frame = columns.frame()
    # One folder has each item once.
    latest = frame.drop_duplicates("item", keep="last") if len(ordered) > 1 else frame
    return Table(
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
    """The columns while they are filled; equal texts are one object."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._texts: dict[str, list[str]] = {name: [] for name in (*_OWN, *_REPEATED)}
        self._folder, self._seconds = array("I"), array("d")
        self._confirmed, self._report, self._as_expected = array("b"), array("b"), array("b")

    def __len__(self) -> int:
        return len(self._folder)

    def add(self, folder: int, run_started: str, result: FleetResult) -> None:
        for name, value in _texts_of(result, run_started).items():
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


def _texts_of(result: FleetResult, run_started: str) -> Mapping[str, str]:
    state = state_of(result)
    return {
        "item": result.item,
        "name": result.name,
        "host": result.host or HERE,
        "command": result.command,
        "state": state,
        "cause": (result.cause or "unknown") if state == FAILING else "",
        "stage": result.stage or "",
        "key": key_of(result),
        "signature": result.signature or "",
        "family": result.family or "",
        "ending": result.ending if result.ending != JUDGED else "unreadable",
        "subject": result.subject or "",
        "title": result.title or "",
        "problem": result.problem or "",
        # An answer out of the cache was true when the run asked for it.
        "seen": max(result.started, run_started),
        "labels": "; ".join(f"{name}={value}" for name, value in sorted(result.labels.items())),
    }
