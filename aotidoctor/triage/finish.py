"""Build the report and its verdict from all findings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from aotidoctor.diagnosis.signing import with_fingerprint
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.model.report import Extensions, Report, current_extensions
from aotidoctor.version import __version__

if TYPE_CHECKING:
    from aotidoctor.model.case import Case
    from aotidoctor.model.localization import Localization
    from aotidoctor.model.report import Diagnosis, LogReading
    from aotidoctor.model.run import Outcome
    from aotidoctor.triage.static_checks import Session


class Invocation:
    """When a command began, and how it was called. ``began`` is in seconds since the epoch; None: now."""

    def __init__(self, command: str, argv: tuple[str, ...], *, began: float | None = None) -> None:
        self.command = command
        self.argv = argv
        at = datetime.now(timezone.utc) if began is None else datetime.fromtimestamp(began, timezone.utc)
        self.started = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        self._since = time.monotonic()

    def seconds(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self._since


@record
class StaticResult:
    """What was found without a session: by reading alone."""

    case: Case
    findings: Sequence[Evidence]
    not_checked: Sequence[NotChecked] = field(default_factory=tuple)
    runs: Sequence[Outcome] = field(default_factory=tuple)
    out_of_time: bool = False


def finish(
    found: Session | StaticResult,
    diagnoses: tuple[Diagnosis, ...],
    watch: Invocation,
    *,
    verdict: str | None = None,
    stage: str | None = None,
    seconds: float | None = None,
    interrupted: bool = False,
    out_of_time: bool = False,
    cannot_examine: str | None = None,
    localization: Localization | None = None,
    log: LogReading | None = None,
    extra: Mapping[str, str] | None = None,
) -> Report:
    """The signed report.

    Without a ``verdict`` it is ``problem`` where there is a cause, ``unknown`` where there is an error finding or the
    report is partial, else ``healthy``; without a ``stage`` it is that of the first cause.
    """
    added = current_extensions()
    late = out_of_time or found.out_of_time
    partial = interrupted or late or cannot_examine is not None
    failed = partial or any(item.severity is Severity.ERROR for item in found.findings)
    report = Report(
        verdict=verdict or ("problem" if diagnoses else "unknown" if failed else "healthy"),
        stage=stage or (diagnoses[0].stage or None if diagnoses else None),
        case=found.case,
        diagnoses=diagnoses,
        findings=tuple(found.findings),
        not_checked=(*found.not_checked, *added.problems),
        runs=tuple(found.runs),
        argv=watch.argv,
        command=watch.command,
        version=__version__,
        started=watch.started,
        seconds=watch.seconds() if seconds is None else seconds,
        interrupted=interrupted,
        out_of_time=late,
        cannot_examine=cannot_examine,
        localization=localization,
        log=log,
        extra={**(extra or {}), **_of_plugins(added)},
    )
    return with_fingerprint(report)


def _of_plugins(added: Extensions) -> dict[str, str]:
    """Which plugins took part, and the facts that they know of the host."""
    facts = {f"host.{name}": value for name, value in added.host_facts.items()}
    return {"plugins": added.took_part, **facts} if added.took_part else facts
