"""Summarize a fleet: read and write its lines of results, and describe clusters, their traits and what is new.

A trait is a correlation and no cause. Times are in seconds.

Apart from ``fleet``: `--help` loads that, and this computes tables from its fields at import.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields

from aotidoctor.model.fleet import SCHEMA, FleetResult, FleetRun
from aotidoctor.model.record import as_object, record, to_json
from aotidoctor.model.record_json import RecordError, T, from_json


# Results as lines of JSON, and back.
class FleetFormatError(ValueError):
    """A text is not what a results folder of this version holds; the message says what it is."""


def result_line(result: FleetResult) -> str:
    """``result`` as one line of JSON without a newline. What has its default is left out."""
    document: dict[str, object] = {"schema": SCHEMA}
    for name, default in _DEFAULTS.items():
        value = getattr(result, name)
        if value != default:
            document[name] = value
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def read_line(line: str | bytes) -> FleetResult:
    """The result in one line of ``results.jsonl``. Raises ``FleetFormatError``."""
    found = _read(FleetResult, line)
    if found.verdict not in ("healthy", "problem", "unknown"):
        raise FleetFormatError(f"verdict: {found.verdict[:40]!r}, expected healthy, problem or unknown")
    if not math.isfinite(found.seconds) or not math.isfinite(found.confidence or 0):
        raise FleetFormatError("seconds and confidence: expected finite numbers")
    return found


def run_text(run: FleetRun) -> str:
    """``fleet.json`` of ``run``."""
    return json.dumps({"schema": SCHEMA, **as_object(to_json(run))}, indent=2, ensure_ascii=True) + "\n"


def read_run(text: str | bytes) -> FleetRun:
    """The run that ``fleet.json`` describes. Raises ``FleetFormatError``."""
    return _read(FleetRun, text)


def _read(kind: type[T], text: str | bytes) -> T:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FleetFormatError(f"no JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("schema"), str):
        raise FleetFormatError("other JSON, without a schema")
    if document["schema"] != SCHEMA:
        raise FleetFormatError(f"the schema is {document['schema'][:80]!r}, this version reads {SCHEMA!r}")
    try:
        return from_json(kind, document)
    except RecordError as error:
        raise FleetFormatError(str(error)) from error


_DEFAULTS: Mapping[str, object] = {
    item.name: {} if item.name in ("labels", "facts") else item.default for item in fields(FleetResult)
}


# Clusters of the same failure and the overview.
SUMMARY_SCHEMA = "aotidoctor.clusters/1"

# How a cluster compares with the baseline. ``KNOWN`` has as many items as before, ``CHANGED`` has not.
NEW, KNOWN, CHANGED = "new", "known", "changed"
HERE = "here"
"""The host of an item that was judged for the machine that judged."""


@record
class Trait:
    """A feature that a cluster has more often than the healthy items, or less often: a correlation, no cause.

    ``relation`` is ``is``, or ``from`` and ``up to`` for dates and numbers. ``inside`` of the ``of_inside`` items of
    the cluster have it, and ``healthy`` of the ``of_healthy`` healthy ones; items that do not state the feature are in
    neither. ``chance`` is the probability (0..1) of a difference as great as this if the feature meant nothing, after
    allowing for the number of features that were compared; it takes the items as independent, which packages of one
    build are not.
    """

    feature: str
    value: str
    relation: str
    inside: int
    of_inside: int
    healthy: int
    of_healthy: int
    chance: float


@record
class Example:
    """One item: its name, its folder of results, and the path of its full report (None where there is none)."""

    name: str
    host: str
    folder: str
    report: str | None = None


@record
class Acceptance:
    """One entry of the list of accepted failures. ``until`` (``YYYY-MM-DD``) is the last day that it holds."""

    reason: str
    until: str
    signature: str | None = None
    family: str | None = None
    cause: str | None = None
    items: str | None = None
    expired: bool = False


@record
class Cluster:
    """Items that fail in the same way: those with the same exact signature.

    ``key`` is the signature, or ``unsigned:…`` where the failure has none. ``count`` items fail so now, ``seen`` is how
    often they were seen to in all folders, from ``first_seen`` to ``last_seen`` (RFC 3339). ``confirmed`` of the
    ``count`` were confirmed. ``subjects``, ``hosts`` and ``examples`` are the commonest or first few.

    ``change`` is one of ``new``, ``known``, ``changed`` against the baseline, empty without one; ``before`` is the
    count there, ``regressed`` how many of the items were healthy there. ``accepted`` is the entry of the list that
    covers all its items, expired or not.
    """

    key: str
    signature: str | None
    family: str | None
    cause: str | None
    title: str
    stage: str | None
    count: int
    seen: int
    first_seen: str
    last_seen: str
    confirmed: int = 0
    subjects: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    shared: tuple[Trait, ...] = ()
    lacked: tuple[Trait, ...] = ()
    change: str = ""
    before: int | None = None
    regressed: int = 0
    accepted: Acceptance | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the list covers it today."""
        return self.accepted is not None and not self.accepted.expired

    @property
    def is_news(self) -> bool:
        """Whether a nightly job should speak of it: new, or with items that were healthy; and not accepted."""
        return (self.change == NEW or self.regressed > 0) and not self.is_accepted


@record
class Unexamined:
    """Items of which nothing is known, by how judging them ended. ``blind`` of them were examined in the baseline."""

    ending: str
    count: int
    problem: str
    examples: tuple[Example, ...] = ()
    blind: int = 0


@record
class Gone:
    """A cluster of the baseline that no item is in now. ``healthy`` of its items are healthy now."""

    key: str
    cause: str | None
    title: str
    before: int
    healthy: int


@record
class Timeline:
    """The count of each cause per ``unit`` (``hour``, ``day``, ``week`` or ``month``).

    ``starts`` are the beginnings of the periods, ``series`` the counts per cause in their order; ``other causes``
    stands for the rarer ones.
    """

    unit: str
    starts: tuple[str, ...]
    series: tuple[tuple[str, tuple[int, ...]], ...]


@record
class Matrix:
    """Hosts (rows) and causes (columns): ``counts[i][j]`` items fail so; ``totals`` are all items per host."""

    hosts: tuple[str, ...]
    causes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    totals: tuple[int, ...]


@record
class Slow:
    """An item that took long; seconds of judging."""

    name: str
    host: str
    seconds: float
    state: str


@record
class ItemRow:
    """One item. ``state`` is ``healthy``, ``failing`` or ``unexamined``; ``cluster`` counts from 1, 0 is none."""

    item: str
    name: str
    host: str
    command: str
    state: str
    cause: str
    subject: str
    title: str
    stage: str
    signature: str
    cluster: int
    seconds: float
    seen: str
    problem: str = ""
    labels: str = ""
    report: str = ""


@record
class DamagedFile:
    """Lines of a results file that could not be read, with the reasons of the first few."""

    folder: str
    lines: int
    reasons: tuple[str, ...]


@record
class Overview:
    """Everything that a format may show of a fleet, but for the rows of the items.

    The state of an item is that of the latest folder that has it. ``past`` clusters were seen in an earlier folder
    and have no item now. ``unexpected`` items are not as their manifest expects, ``expected`` failures are.
    ``unused`` entries of the accepted list cover nothing. ``baseline`` is its folder, empty without one.
    """

    folders: tuple[str, ...]
    items: int
    healthy: int
    failing: int
    clusters: tuple[Cluster, ...]
    unexamined: tuple[Unexamined, ...]
    timeline: Timeline
    matrix: Matrix
    slowest: tuple[Slow, ...]
    more_clusters: int = 0
    damaged: tuple[DamagedFile, ...] = ()
    past: tuple[Gone, ...] = ()
    baseline: str = ""
    gone: tuple[Gone, ...] = ()
    added: int = 0
    removed: int = 0
    fixed: int = 0
    unfinished: tuple[str, ...] = ()
    expected: int = 0
    unexpected: int = 0
    unused: tuple[Acceptance, ...] = ()
    argv: tuple[str, ...] = ()
    version: str = ""
    made: str = ""

    @property
    def not_examined(self) -> int:
        """The number of items without a verdict."""
        return sum(group.count for group in self.unexamined)

    @property
    def blind(self) -> int:
        """The number of items that were examined in the baseline and are not now."""
        return sum(group.blind for group in self.unexamined)

    @property
    def news(self) -> tuple[Cluster, ...]:
        """The clusters that a nightly job should speak of."""
        return tuple(cluster for cluster in self.clusters if cluster.is_news)
