"""Everything that a format may show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from aotidoctor.model.record import record

if TYPE_CHECKING:
    from aotidoctor.model.case import Case
    from aotidoctor.model.compat import Compatibility
    from aotidoctor.model.diagnosis import Diagnosis
    from aotidoctor.model.evidence import Evidence, NotChecked
    from aotidoctor.model.history import History
    from aotidoctor.model.localization import Localization
    from aotidoctor.model.log import LogReading
    from aotidoctor.model.run import Outcome
    from aotidoctor.model.serving_names import NameTable
    from aotidoctor.model.signature import Signature

SCHEMA = "aotidoctor.report/1"


@record
class Report:
    """The result of one command.

    ``verdict`` is ``healthy``, ``problem`` or ``unknown``; ``stage`` is where the failure is: ``artifact``, ``host``,
    ``load``, ``inputs``, ``run`` or ``output``, of a log also ``export``, ``compile``, ``link``, ``package``
    or ``serve`` (None when healthy). ``internal_error`` is a traceback of aotidoctor
    itself. ``interrupted`` and ``out_of_time`` mark partial reports. ``started`` is RFC 3339 UTC. ``localization`` is
    the place of the failure in the compiled code, None where nothing was looked for. ``names`` are those that
    a release of Triton has for the package's tensors, None where nobody asked. ``fingerprint`` is the signature at two
    granularities with its parts, ``signature`` the finer one alone. ``log`` is what a log said, where one was read.
    ``history`` is what a store of cases knows of the failure from before, None where none was named.
    ``compat`` is what packages need and where they run, None where nobody asked.
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
    history: History | None = None
