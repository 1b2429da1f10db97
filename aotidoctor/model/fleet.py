"""One line of a fleet's results: what was asked of one item, and the essence of the answer.

A results folder holds

    fleet.json         what was asked and by which version: ``FleetRun``
    results.jsonl      one line per item, a ``FleetResult`` as JSON, written as the item ends
    reports/ID.json    the full report (``aotidoctor.report/1``) of each item that is not healthy; ID is ``item``

``results.jsonl`` is the truth and everything else a view of it. While a run goes on, its lines stand in the order in
which items ended, and of two lines with the same ``item`` the later one counts. When all items have ended, the file
is put into the order of the items, one line each.

Minor versions only add: keys that are not known are ignored, and what is missing takes its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.record import record

SCHEMA = "aotidoctor.fleet/1"
RUN_FILE, RESULTS_FILE, REPORTS_FOLDER = "fleet.json", "results.jsonl", "reports"

Fact = str | int | float | bool

# How judging an item ended. What is not ``JUDGED`` is a failure of the examination, and never the package's.
JUDGED = "judged"
UNREADABLE, TIMED_OUT, KILLED, OUT_OF_MEMORY, FAILED = "unreadable", "timed-out", "killed", "out-of-memory", "failed"
ENDINGS = (JUDGED, UNREADABLE, TIMED_OUT, KILLED, OUT_OF_MEMORY, FAILED)


@record
class FleetResult:
    """The result of one item.

    Identity: ``item`` are 16 hex digits of what was asked (command, paths, host), the same in every run that asks the
    same. ``name`` is the package, log, bundle or folder as given, redacted and without credentials. ``sha256`` and
    ``size`` (bytes) are those of its content, None where it was not read whole. ``key`` are 64 hex digits over
    everything that decides the answer (contents, options, host, tool, playbooks), empty where that is not known.

    Question: ``command`` is ``check``, ``run``, ``compat``, ``classify``, ``triton``, ``verify`` or ``analyze``.
    ``inputs``, ``reference`` and ``log`` are paths or None. ``host`` is the host profile that was judged for, None for
    the machine that judged. ``labels`` and ``expected`` (a cause, or ``healthy``) are the manifest's.

    Answer: ``ending`` is one of ``ENDINGS``, and ``problem`` says why it is not ``judged``, or why nothing could be
    examined. ``verdict`` is ``healthy``, ``problem`` or ``unknown``; ``status`` is the exit status of the command.
    ``cause``, ``cause_status`` (``confirmed`` or ``suspected``), ``confidence`` (0..1), ``title`` and ``subject`` are
    of the first diagnosis; ``causes`` are the slugs of all of them, best first. ``signature`` and ``family`` are the
    two fingerprints. ``as_expected`` is None without ``expected``.

    ``facts`` are features of package and host for comparing groups of items, such as ``kind``, ``device``,
    ``built_torch``, ``isa``, ``modified`` (RFC 3339 date of the file), ``host_torch``, ``host_isa``.

    ``started`` is RFC 3339 UTC and ``seconds`` the time of judging; both are of the original judging where the answer
    came from the cache. ``bytes_read`` is set where only parts of a remote package were read. ``attempts`` counts the
    processes that the item was given to. ``tool`` is the version that judged. ``report`` is the path of the full
    report within the folder, None for a healthy item.
    """

    item: str
    name: str
    command: str
    ending: str = JUDGED
    verdict: str = "unknown"
    status: int = 0
    stage: str | None = None
    cause: str | None = None
    cause_status: str | None = None
    confidence: float | None = None
    title: str | None = None
    subject: str | None = None
    causes: tuple[str, ...] = ()
    signature: str | None = None
    family: str | None = None
    problem: str | None = None
    sha256: str | None = None
    size: int | None = None
    key: str = ""
    inputs: str | None = None
    reference: str | None = None
    log: str | None = None
    host: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    expected: str | None = None
    as_expected: bool | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    started: str = ""
    seconds: float = 0.0
    bytes_read: int | None = None
    attempts: int = 1
    tool: str = ""
    report: str | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether it was examined to the end and nothing was found."""
        return self.ending == JUDGED and self.verdict == "healthy" and self.status == 0


@record
class FleetRun:
    """What was asked of a results folder. ``finished`` is empty while items are left; times are RFC 3339 UTC.

    ``items`` is the number of items, ``hosts`` are the profiles, ``tool`` is the version and ``digest`` that of the
    code and playbooks which judged.
    """

    command: str
    items: int
    started: str
    finished: str = ""
    hosts: tuple[str, ...] = ()
    tool: str = ""
    digest: str = ""
    argv: tuple[str, ...] = ()


@record
class FleetSummary:
    """How a fleet ended, for who asked for it.

    ``folder`` holds the results. ``kept`` items had a line there already, ``cached`` ones an answer in the cache, and
    ``judged`` ones were judged now; ``items`` is how many there are. ``verdicts`` counts verdicts, with the ending in
    their place where an item was not judged; ``causes`` those of the first rank, most frequent first. ``statuses``
    counts the exit statuses of the items that are not as expected. ``problem`` is why it is not whole.
    """

    folder: str
    command: str
    items: int
    kept: int
    cached: int
    judged: int
    as_expected: int
    seconds: float
    verdicts: Mapping[str, int] = field(default_factory=dict)
    causes: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[int, int] = field(default_factory=dict)
    interrupted: bool = False
    problem: str | None = None
    notes: tuple[str, ...] = ()
