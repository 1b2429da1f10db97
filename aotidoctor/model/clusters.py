"""What a fleet's results show together: groups of the same failure, what sets them apart, and what is new."""

from __future__ import annotations

from aotidoctor.model.record import record

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
    """How often each cause was seen per ``unit`` (``hour``, ``day``, ``week`` or ``month``).

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
        """How many items nothing is known of."""
        return sum(group.count for group in self.unexamined)

    @property
    def blind(self) -> int:
        """How many items were examined in the baseline and are not now."""
        return sum(group.blind for group in self.unexamined)

    @property
    def news(self) -> tuple[Cluster, ...]:
        """The clusters that a nightly job should speak of."""
        return tuple(cluster for cluster in self.clusters if cluster.is_news)
