"""Describe results over many items: a fleet's results, hosts for packages, sweeps, samples, differences of documents.

A results folder of a fleet holds

    fleet.json         what was asked and by which version: ``FleetRun``
    results.jsonl      one line per item, a ``FleetResult`` as JSON, written as the item ends
    reports/ID.json    the full report (``aotidoctor.report/1``) of each item that is not healthy; ID is ``item``

``results.jsonl`` is the truth and everything else a view of it. During a run its lines stand in the order in which
items ended, and of two lines with the same ``item`` the later one counts. When all items have ended, the file is put
into the order of the items, one line each. Minor versions only add: unknown keys are ignored, and a missing key takes
its default.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from aotidoctor.model.record import record

if TYPE_CHECKING:
    from aotidoctor.model.localization import OutputComparison

# Results of a fleet.
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
    """The run that fills a results folder. ``finished`` is empty while items are left; times are RFC 3339 UTC.

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
    """The end of a fleet, for the program that started it.

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


# Will it run there? What packages need, and the answer for each host.
class HostVerdict(enum.Enum):
    """``runs``: everything that it needs is there. ``refused``: it will not load or run. ``unknown``: not told."""

    RUNS = "runs"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@record
class PackageNeeds:
    """Requirements of one package.

    ``built_least`` and ``built_before`` are releases of torch (``2.13``) with what they rest on: it was built by the
    former or later, and by one before the latter; None where nothing tells. ``torch_least`` is the oldest release that
    can load it, ``executorch_least`` the oldest release of ExecuTorch whose runtime can, with the ``backends`` needed.
    ``abi_versions`` are the newest symbol versions that it asks for (``GLIBC_2.34``). ``isa`` are CPU
    flags, ``gpu_targets`` architectures of its GPU code. ``executable_stack`` says whether it asks for one.
    ``threads`` is the least number of threads that one of its kernels has room for, None where it does not matter.
    ``exactly`` is what the loader of an artifact of torch.compile wants no other of.
    """

    package: str
    device: str | None = None
    machine: str | None = None
    built_least: str | None = None
    built_least_because: str = ""
    built_before: str | None = None
    built_before_because: str = ""
    torch_least: str | None = None
    torch_least_because: str = ""
    executorch_least: str | None = None
    backends: tuple[str, ...] = ()
    abi_versions: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    isa: tuple[str, ...] = ()
    march_native: bool | None = None
    gpu_targets: tuple[str, ...] = ()
    oldest_driver: str | None = None
    custom_ops: tuple[str, ...] = ()
    threads: int | None = None
    executable_stack: bool | None = None
    exactly: str | None = None
    problem: str | None = None


@record
class HostAnswer:
    """One cell of the matrix. ``because`` are causes and what was observed, ``unknown`` what would have to be known."""

    package: str
    host: str
    answer: HostVerdict
    because: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    provided: tuple[str, ...] = ()


@record
class Compatibility:
    """The needs of all packages, and every package on every host, package by package."""

    needs: tuple[PackageNeeds, ...]
    answers: tuple[HostAnswer, ...]


# What a package does at the boundary of its contract, one row per call.
class Says(str, enum.Enum):
    """Prediction of the contract for a call: right, outside of a compiled range, refused, or nothing (index values)."""

    ACCEPTS = "accepts"
    RANGE = "out of range"
    REFUSES = "refuses"
    SILENT = "does not say"


class Does(str, enum.Enum):
    """Reaction of the package, or of the program, to a call. ``RETURNS``: there was nothing to compare with."""

    RIGHT = "right"
    WRONG = "wrong numbers"
    ERROR = "error"
    CRASH = "crash"
    HANG = "hang"
    RETURNS = "returns"
    UNKNOWN = "not known"


class SweepVerdict(str, enum.Enum):
    """Meaning of a row, worst first.

    ``FAULT``: what the contract accepts fails or is wrong, where the program is right. ``UNGUARDED``: the package takes
    what it computes wrongly, or crashes, without a word. ``REFUSED``: the package ends with an error where the program
    computes. ``HARMLESS``: the contract refuses it, and the package is right all the same. ``FINE``: all agree.
    """

    FAULT = "fault"
    UNGUARDED = "unguarded"
    REFUSED = "refused"
    HARMLESS = "harmless"
    FINE = "fine"
    UNKNOWN = "not known"


@record
class SweepRow:
    """One call. ``subject`` is a leaf, a symbol or the call; ``change`` says what was changed of it, '' for nothing.

    ``axis`` is ``base``, ``dtype``, ``stride``, ``size``, ``divisibility``, ``rank``, ``value``, ``none``, ``keys`` or
    ``pair``. ``cause`` is why the contract refuses it. ``detail`` and ``program_detail`` are the words of an error.
    ``checked`` is what the package does under AOTI_RUNTIME_CHECK_INPUTS=1, None where that was not tried.
    """

    axis: str
    subject: str
    change: str
    says: Says
    package: Does
    program: Does
    judged: SweepVerdict
    cause: str | None = None
    detail: str = ""
    program_detail: str = ""
    checked: Does | None = None
    run: str | None = None
    seconds: float = 0.0


@record
class Sweep:
    """All rows, in the order in which they were asked. ``unasked`` says how many were not, and why.

    ``interrupted``: somebody ended it, so that rows are missing.
    """

    package: str
    reference: str | None
    rows: tuple[SweepRow, ...]
    planned: int
    unasked: tuple[str, ...]
    seconds: float
    torch: str | None = None
    interrupted: bool = False


# Many samples of one package.
@record
class SampleRow:
    """The call of one sample. ``verdict`` is ``healthy``, ``problem``, or ``unknown`` for a failure without a cause.

    ``cause``, ``subject`` and ``observed`` are those of its first cause; nobody treated it but the first of its
    cluster. ``outputs`` are digests, with ``--values hash``; ``comparison`` is that with the reference.
    """

    name: str
    verdict: str
    cause: str = ""
    subject: str | None = None
    observed: str = ""
    seconds: float = 0.0
    run: str = ""
    outputs: tuple[str | None, ...] = ()
    comparison: tuple[OutputComparison, ...] = ()


@record
class SampleCluster:
    """Samples that fail alike: ``count`` of them, of which ``names`` are the first. ``status`` is that of its cause."""

    verdict: str
    cause: str
    subject: str | None
    observed: str
    status: str
    count: int
    names: tuple[str, ...]


@record
class OutputStatistics:
    """One output over all samples that returned it. ``nan``, ``inf`` and ``differing`` count samples.

    ``distinct`` counts different values, None where one could not be read; ``low`` and ``high`` are None with
    ``--values hash``. ``worst`` is the sample with the largest difference from the reference.
    """

    path: str
    samples: int = 0
    dtypes: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    distinct: int | None = 0
    nan: int = 0
    inf: int = 0
    low: float | None = None
    high: float | None = None
    differing: int = 0
    max_abs: float | None = None
    max_rel: float | None = None
    worst: str | None = None


@record
class Samples:
    """Calls of one package with many samples; the rest of the report is about ``examined``, one of them.

    ``called`` of ``given`` were called, in ``processes`` processes; ``bad`` are not healthy, ``first_bad`` is the first
    of those, ``worst`` the one that is farthest from the reference. ``notes`` say what was left out.
    """

    given: int
    called: int
    bad: int
    processes: int
    examined: str
    first_bad: str | None = None
    worst: str | None = None
    outputs: tuple[OutputStatistics, ...] = ()
    clusters: tuple[SampleCluster, ...] = ()
    rows: tuple[SampleRow, ...] = ()
    notes: tuple[str, ...] = ()


# Differences between two documents: reports, packages, hosts or bundles.
DIFFERENCE_SCHEMA = "aotidoctor.diff/1"
# From what alone makes a package fail to what no playbook speaks of. ``outcome`` is what came of it, not why.
LEVELS = ("decisive", "relevant", "outcome", "minor")


@record
class ComparedSide:
    """One of the two. ``kind`` is ``report``, ``bundle``, ``package`` or ``host``.

    ``parts`` are those that it tells of: ``host``, ``package``, ``inputs``, ``outcome``. ``verdict`` is None where
    nothing was examined for one; ``causes`` are the slugs of its diagnoses, best first.
    """

    label: str
    name: str
    kind: str
    parts: tuple[str, ...]
    verdict: str | None = None
    causes: tuple[str, ...] = ()
    version: str = ""
    made: str = ""


@record
class DocumentDifference:
    """One fact that is not the same.

    ``rank`` counts from 1, what matters most first. ``area`` is the part it belongs to, or ``fit`` for what a package
    needs against what a host has. ``playbook`` is the cause that speaks of such a difference, None where none does;
    ``codes`` are those of the evidence that it rests on. ``diagnosed`` is the label of the side in which that cause was
    diagnosed, empty where in none or in both; ``evidence`` are findings of that side.
    """

    area: str
    subject: str
    a: str
    b: str
    level: str
    why: str
    rank: int = 0
    playbook: str | None = None
    codes: tuple[str, ...] = ()
    diagnosed: str = ""
    evidence: tuple[str, ...] = ()


@record
class DocumentComparison:
    """Both sides and what differs, ranked.

    ``equal`` counts per area the facts that are the same. ``left_out`` counts what was not compared because it differs
    from run to run and machine to machine without meaning. ``unknown`` are facts that only one side tells.
    """

    a: ComparedSide
    b: ComparedSide
    differences: tuple[DocumentDifference, ...]
    equal: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @property
    def matters(self) -> tuple[DocumentDifference, ...]:
        """The differences that are more than minor."""
        return tuple(item for item in self.differences if item.level != "minor")
