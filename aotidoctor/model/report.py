"""Describe a report: everything that a format may show, with its causes, fingerprint, log, history and plugins.

Events tell the progress of a running diagnosis; nothing in a report depends on them. A fingerprint has two
granularities and keeps what went into it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model.evidence import FactValue, Severity
from aotidoctor.model.record import JsonObject, record

if TYPE_CHECKING:
    from aotidoctor.checks.check import Check
    from aotidoctor.model.case import Case, SeenBefore
    from aotidoctor.model.evidence import Evidence, NotChecked
    from aotidoctor.model.fleet import Compatibility, Samples
    from aotidoctor.model.localization import Localization
    from aotidoctor.model.run import Outcome
    from aotidoctor.model.serving_config import NameTable
    from aotidoctor.probes.probe import Probe


# Progress of a running diagnosis.
class EventKind(enum.Enum):
    """Kind of an event.

    ``stage``: a stage of the pipeline begins. ``probe-start`` and ``probe-end``: one child run. ``treatment``: a
    treatment was tried (it has ended).
    """

    STAGE = "stage"
    PROBE_START = "probe-start"
    PROBE_END = "probe-end"
    TREATMENT = "treatment"


@record
class Event:
    """One step.

    ``name`` is the stage, probe or treatment. ``seconds`` is how long it took (0 at a start). ``verdict`` is a few
    words for a person (``SIGSEGV in run1``); ``ok`` is None where good and bad do not apply.
    """

    kind: EventKind
    name: str
    seconds: float = 0.0
    verdict: str = ""
    ok: bool | None = None


OnEvent = Callable[[Event], None]


# The fingerprint of a failure.
SIGNATURE_VERSION = 2


@record
class SignaturePart:
    """One part: ``rule`` made ``text`` out of ``source`` (evidence or run id, empty where there is none).

    ``granularity`` is ``family`` for a part of both fingerprints, ``exact`` for one of the finer only.
    """

    rule: str
    text: str
    granularity: str
    source: str = ""


@record
class Signature:
    """``family`` and ``exact`` are ``aotidoctor2f:`` and ``aotidoctor2:`` with 16 hex digits each."""

    family: str
    exact: str
    parts: tuple[SignaturePart, ...]
    version: int = SIGNATURE_VERSION


# Causes with their evidence, and what to do about them.
class Status(enum.Enum):
    """``confirmed``: the failure went away with the treatment and came back without it; or the file itself proves it.

    ``confirmed-in-emulation``: the same, seen in the emulation of a GPU on the CPU and not on hardware. All else is
    ``suspected``.
    """

    CONFIRMED = "confirmed"
    EMULATED = "confirmed-in-emulation"
    SUSPECTED = "suspected"


@record
class Condition:
    """Matches evidence by code and kind (None: any kind), and by equal facts.

    A code or text fact that ends in ``*`` matches by prefix (``TRITON-*``); a fact of ``*`` alone matches any value
    that is there. ``confidence`` replaces that of the playbook when this condition is the best one that matched.
    ``certain``: an error that meets it is proof by itself, such as a file that is not there or is cut off.
    """

    code: str
    kind: str | None = None
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    confidence: float | None = None
    certain: bool = False


@record
class Playbook:
    """One file of ``playbooks/``: conditions and advice. ``looked_like`` and ``remedy`` may name facts in braces.

    ``severity`` is the least severity of evidence that makes a diagnosis. ``weight`` orders causes, lowest first.
    ``explains`` names causes, symptoms (``index-out-of-bounds``, ``signalled``) and the groups ``@load``, ``@run`` and
    ``@output`` that this cause accounts for. ``stage`` is the heading of the cause: ``artifact``, ``host``, ``load``,
    ``inputs``, ``run``, ``output``, ``compile`` or ``other``. ``symptoms`` are those that a user may begin with.
    """

    cause: str
    title: str
    any_of: tuple[Condition, ...]
    all_of: tuple[Condition, ...]
    none_of: tuple[Condition, ...]
    explains: tuple[str, ...]
    severity: Severity
    weight: int
    confidence: float
    looked_like: str
    remedy: str
    command: str
    treatment: str | None
    would_confirm: str
    versions: str
    path: str
    stage: str = ""
    symptoms: tuple[str, ...] = ()


@record
class Treatment:
    """A change to the case that should remove the failure.

    ``steps`` is what the worker applies in order, each ``{"op": ...}`` (see ``aotidoctor.worker.treatments.treat``).
    ``command`` is the same change as a line of Python for the user. ``others`` are the ways that fit as well.
    """

    name: str
    cause: str
    text: str
    steps: tuple[JsonObject, ...]
    command: str = ""
    others: tuple[str, ...] = ()


@record
class Remedy:
    """Advice to the user. ``verified`` is True only when a child run with it succeeded and one without it failed.

    ``tried`` says of advice about the model, its export or its compile whether it was tried, and what came of it.
    """

    text: str
    command: str = ""
    verified: bool = False
    tried: str = ""


@record
class Diagnosis:
    """A cause, ranked. ``confidence`` in 0..1; ``evidence`` are ids; ``confirmation`` names the runs for it.

    ``stage`` is that of the playbook: where the failure is.
    """

    cause: str
    rank: int
    status: Status
    confidence: float
    severity: Severity = Severity.ERROR
    title: str
    looked_like: str
    subject: str | None
    evidence: tuple[str, ...]
    remedy: Remedy
    confirmation: str = ""
    would_confirm: str = ""
    playbook: str
    stage: str = ""


def merged_facts(path: str, other: str) -> dict[str, str]:
    """Facts, with the remedy, where one tensor was the example of two inputs and ``other`` is read as ``path``, too."""
    remedy = (
        f"Export again with a tensor of its own for each input: {path} and {other} were one tensor, and the program "
        f"reads {other} in the place of {path}."
    )
    command = "torch.export.export(model, (x, x.clone()))   # not (x, x)"
    return {"path": path, "other": other, "remedy": remedy, "command": command}


def compile_again(program: str) -> str:
    """The command that compiles the exported program in the file ``program`` into another package."""
    return f"torch._inductor.aoti_compile_and_package(torch.export.load({program!r}), package_path='recompiled.pt2')"


# The events of a log, in order, and their relations.
@record
class LogPattern:
    """A message in logs of failures with this cause: one entry of the ``toml log`` block of a playbook.

    ``regex`` is searched in the text of an event. ``near`` and ``not_near`` are searched in the lines around it: all
    of the first must be there, none of the second. Named groups are facts (``subject`` is the subject). ``stage`` is
    where such a line comes from (``export``, ``compile``, ``link``, ``package``, ``load``, ``run``, ``output``,
    ``serve``; empty: that of the event). ``source`` is the file that prints the message, ``known`` and ``fixed`` are
    releases of what ``component`` names. ``confidence`` in 0..1. ``example`` is a real message of this kind; without
    one the place of the failure tells the cause, and ``source`` is the reason.
    ``is_suspect``: where nothing better is known it is a diagnosis, too, however low its confidence.
    """

    cause: str
    regex: str
    example: str
    source: str
    confidence: float
    near: tuple[str, ...] = ()
    not_near: tuple[str, ...] = ()
    stage: str = ""
    component: str = "torch"
    known: str = ""
    fixed: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    is_suspect: bool = False


@record
class LogEvent:
    """One failure in a log, from line ``first`` to line ``last`` (from 1).

    ``form`` names the shape (``python``, ``terminate``, ``c10``, ``glog``, ``compiler``, ``linker``, ``loader``,
    ``gdb``, ``sanitizer``, ``triton``, ``kernel``, ``assert``, ``signal``, ``line``...). ``text`` is the message,
    without prefixes and colours; ``frames`` are the symbols or ``file:line`` of its stack, innermost first. ``origin``
    is the rank, thread, container or process it came from. ``level`` is ``error``, ``warning``, ``notice`` for a line
    that only patterns take for a failure, or ``mention`` for news that speak of one. ``count`` is how often the same
    was printed; ``echo_of`` is the line of the event that it repeats or follows from; ``tainted`` says that a CUDA
    error came before it in its origin.
    """

    form: str
    first: int
    last: int
    text: str
    kind: str = ""
    frames: tuple[str, ...] = ()
    origin: str = ""
    stage: str = ""
    level: str = "error"
    count: int = 1
    echo_of: int | None = None
    tainted: bool = False


@record
class LogMatch:
    """An event that a pattern knows; ``line`` says so. ``facts`` are the pattern's own and its named groups.

    ``confidence`` is that of the pattern, less where the rest of the log speaks against it.
    """

    event: LogEvent
    pattern: LogPattern
    line: int
    text: str
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    confidence: float = 0.0


@record
class LogReading:
    """One log, read to its end in bounded memory.

    ``events`` are the first ones, ``more_events`` counts those left out. ``versions`` are those that the log names
    (``torch``, ``triton``, ``cuda``, ``driver``, ``python``...). ``unknown`` are failures that no pattern knows.
    ``problems`` says what could not be read (encoding, lines cut, a truncated end); ``out_of_time``: the end of it was
    not read, because the rest took too long. ``names_aoti``: something in it, or the message itself, is AOTInductor's.
    """

    name: str
    size: int
    lines: int
    events: tuple[LogEvent, ...] = ()
    matches: tuple[LogMatch, ...] = ()
    more_events: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    origins: tuple[str, ...] = ()
    unknown: tuple[LogEvent, ...] = ()
    problems: tuple[str, ...] = ()
    out_of_time: bool = False
    names_aoti: bool = True

    @property
    def has_failure(self) -> bool:
        """Whether something failed, and is not only warned of."""
        return bool(self.unknown) or any(match.event.level == "error" for match in self.matches)


# In ``extra`` of a report: which of its runs were not confined, and why.
NOT_CONFINED = "not_confined"
# In ``extra`` of a report whose script could not be written: why.
UNWRITTEN = "repro_unwritten"
# Beginning of the reason of ``compat`` that names what a profile does not state.
UNSTATED = "it is not stated: "


# The report.
SCHEMA = "aotidoctor.report/1"


@record
class Report:
    """The result of one command.

    ``verdict`` is ``healthy``, ``problem`` or ``unknown``; ``stage`` is where the failure is: ``artifact``, ``host``,
    ``load``, ``inputs``, ``run`` or ``output``, of a log also ``export``, ``compile``, ``link``, ``package``
    or ``serve`` (None when healthy). ``internal_error`` is a traceback of aotidoctor
    itself. ``interrupted`` and ``out_of_time`` mark partial reports. ``started`` is RFC 3339 UTC. ``localization`` is
    the place of the failure in the compiled code, None where nothing was looked for. ``names`` are those that
    a release of Triton has for the package's tensors, None where not requested. ``fingerprint`` is the signature at two
    granularities with its parts, ``signature`` the finer one alone. ``log`` is the reading of a log, if there was one.
    ``history`` is what a store of cases knows of the failure from before, None where none was named.
    ``compat`` is what packages need and where they run, None where not requested. ``samples`` are calls with many
    samples, None where there is one.
    """

    verdict: str
    stage: str | None
    case: Case
    diagnoses: tuple[Diagnosis, ...]
    findings: tuple[Evidence, ...]
    not_checked: tuple[NotChecked, ...]
    runs: tuple[Outcome, ...]
    argv: tuple[str, ...]
    command: str
    version: str
    started: str
    seconds: float
    signature: str | None = None
    interrupted: bool = False
    out_of_time: bool = False
    cannot_examine: str | None = None
    internal_error: str | None = None
    plan: tuple[str, ...] = ()
    localization: Localization | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    names: NameTable | None = None
    fingerprint: Signature | None = None
    log: LogReading | None = None
    compat: Compatibility | None = None
    history: SeenBefore | None = None
    samples: Samples | None = None


# What plugins add to a command, and the playbook files.
#
# The registries of checks, probes, playbooks and log patterns look here for the additions of plugins. These belong to
# the context of a call, so that a library in several threads may use plugins in one and none in another.


@record
class Extensions:
    """Additions of plugins. ``took_part`` is a line of the report; ``problems`` are unusable parts, with the reasons.

    ``setups`` are modules that every child imports before the package; ``host_facts`` are facts by name.
    """

    checks: tuple[Check, ...] = ()
    probes: tuple[Probe, ...] = ()
    playbooks: tuple[Path, ...] = ()
    patterns: tuple[Path, ...] = ()
    setups: tuple[str, ...] = ()
    host_facts: Mapping[str, str] = field(default_factory=dict)
    took_part: str = ""
    problems: tuple[NotChecked, ...] = ()


NO_EXTENSIONS = Extensions()
_current: ContextVar[Extensions] = ContextVar("aotidoctor_extensions", default=NO_EXTENSIONS)


def current_extensions() -> Extensions:
    """The additions of plugins to this call."""
    return _current.get()


@contextmanager
def use_extensions(extensions: Extensions) -> Iterator[None]:
    """Use ``extensions`` until the end of the block."""
    token = _current.set(extensions)
    try:
        yield
    finally:
        _current.reset(token)


# In the wheel playbooks are in ``aotidoctor/_playbooks``, in a checkout beside the package. An editable install does
# not get the files that the build puts into the wheel, so both places are searched: hence the import of ``pathlib``.
_PACKAGE = Path(__file__).resolve().parent.parent


def playbook_folder() -> Path | None:
    """The folder that holds the playbooks, None when neither place exists."""
    places = (_PACKAGE / "_playbooks", _PACKAGE.parent / "playbooks")
    return next((place for place in places if place.is_dir()), None)


def playbook_files() -> tuple[Path, ...]:
    """Every playbook, sorted by cause, those of plugins last. A README among them is not one."""
    place = playbook_folder()
    return (*(_own_playbooks(place) if place is not None else ()), *current_extensions().playbooks)


@lru_cache(maxsize=4)
def _own_playbooks(place: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in place.glob("*.md") if path.stem.islower()))


def playbook_file(cause: str) -> Path | None:
    """The playbook of ``cause``, None when there is none."""
    return next((path for path in playbook_files() if path.stem == cause), None)
