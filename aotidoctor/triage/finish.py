"""Build the report and its verdict from all findings, and say where there was nothing to examine."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from aotidoctor.model.artifact import RUNNABLE_KINDS, ArtifactKind
from aotidoctor.model.evidence import LIMIT_CODE, Evidence, NotChecked, Severity
from aotidoctor.model.inputs import A_PACKAGE
from aotidoctor.model.record import JsonValue, as_object, record
from aotidoctor.model.report import NOT_CONFINED, Extensions, Report, current_extensions
from aotidoctor.triage.missing_file import no_such_file
from aotidoctor.version import __version__

if TYPE_CHECKING:
    from aotidoctor.model.case import Case
    from aotidoctor.model.localization import Localization
    from aotidoctor.model.report import Diagnosis, LogReading
    from aotidoctor.model.run import Outcome
    from aotidoctor.triage.state import Session


class Invocation:
    """The start and the command line of a command. ``began`` is in seconds since the epoch; None: now."""

    def __init__(self, command: str, argv: tuple[str, ...], *, began: float | None = None) -> None:
        self.command = command
        self.argv = argv
        at = datetime.now(timezone.utc) if began is None else datetime.fromtimestamp(began, timezone.utc)
        self.started = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        self._since = time.monotonic()

    def seconds(self) -> float:
        """Seconds since this object was made."""
        return time.monotonic() - self._since


@record
class StaticResult:
    """Findings of a command that reads without a session."""

    case: Case
    findings: Sequence[Evidence]
    not_checked: Sequence[NotChecked] = field(default_factory=tuple)
    runs: Sequence[Outcome] = field(default_factory=tuple)
    out_of_time: bool = False


# Causes whose remedies are about the model, its export or its compile.
_OF_THE_MODEL = (
    "autotune-failure backend-unsupported codegen-bug custom-op-fake-kernel custom-op-no-kernel dtype-unsupported "
    "dynamic-shape-codegen export-specialization export-unsupported lowering-failure missing-c-shim train-mode "
    "unbacked-symint user-triton-kernel"
)
OF_THE_MODEL = frozenset(_OF_THE_MODEL.split())
NEEDS_MODEL = "not tried: needs the model"


# The finding of a cause in a log. Below the confidence a cause is "perhaps": the failure counts as unexplained.
KNOWN, NAMED_CONFIDENCE = "AD-LOG-001", 0.6


def is_lead(diagnosis: Diagnosis, findings: Sequence[Evidence]) -> bool:
    """Whether a log alone names the cause, and not surely enough: among other things examined it is "perhaps"."""
    known = {item.id for item in findings if item.code == KNOWN}
    return diagnosis.confidence < NAMED_CONFIDENCE and bool(diagnosis.evidence) and known.issuperset(diagnosis.evidence)


def _mark_untried(diagnosis: Diagnosis) -> Diagnosis:
    """Say of advice about the model that nobody tried it."""
    remedy = diagnosis.remedy
    if diagnosis.cause not in OF_THE_MODEL or remedy.verified or remedy.tried:
        return diagnosis
    return replace(diagnosis, remedy=replace(remedy, tried=NEEDS_MODEL))


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
    """Build the signed report.

    Without a ``verdict`` it is ``problem`` where a cause is more than a lead, ``unknown`` where there is a lead or an
    error finding or the report is partial, else ``healthy``; without a ``stage`` it is that of the first cause.
    """
    added = current_extensions()
    diagnoses = tuple(map(_mark_untried, diagnoses))
    late = out_of_time or found.out_of_time
    partial = interrupted or late or cannot_examine is not None
    failed = partial or any(item.severity is Severity.ERROR for item in found.findings)
    is_named = bool(diagnoses) and not is_lead(diagnoses[0], found.findings)
    report = Report(
        verdict=verdict or ("problem" if is_named else "unknown" if diagnoses or failed else "healthy"),
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
        extra={**(extra or {}), **_unconfined(found), **_of_plugins(added)},
    )
    return with_fingerprint(report)


def _unconfined(found: Session | StaticResult) -> dict[str, str]:
    if not found.runs:
        return {}
    # Imported only where something was executed.
    from aotidoctor.probes.payload import unconfined_runs

    free = unconfined_runs(found.case, found.runs)
    return {NOT_CONFINED: free} if free else {}


def with_fingerprint(report: Report) -> Report:
    """Add both fingerprints to ``report``, where it has a failure."""
    if not report.diagnoses and all(item.severity is not Severity.ERROR for item in report.findings):
        return report
    # Imported only for a failure.
    from aotidoctor.diagnosis.failure_signature import fingerprint

    made = fingerprint(report.diagnoses, report.findings, report.runs, report.localization, report.log)
    return replace(report, fingerprint=made, signature=made.exact)


def session_report(
    session: Session, diagnoses: tuple[Diagnosis, ...], invocation: Invocation, *, interrupted: bool = False
) -> Report:
    """Build the signed report on a package that checks, and perhaps probes, have examined."""
    plain = session.outcomes.get("plain_run")
    stage = diagnoses[0].stage or None if diagnoses else None
    if not diagnoses and plain is not None and any(item.severity is Severity.ERROR for item in session.findings):
        stage = "load" if plain.stage in ("start", "import", "setup", "inputs", "load", "after_load") else "run"
    localization = None
    if session.outcomes:
        # Imported only where something was executed.
        from aotidoctor.localize.culprit import localize

        localization = localize(session.case, session.findings, session.outcomes, failed=bool(diagnoses))
    report = finish(
        session,
        diagnoses,
        invocation,
        stage=stage,
        interrupted=interrupted,
        out_of_time=any(item.code == LIMIT_CODE for item in session.not_checked),
        cannot_examine=cannot_examine_reason(session, diagnoses),
        localization=localization,
    )
    return _without_ranges(report) if session.case.options.values == HASH else report


# What --values takes where no statistics of values may leave, and what those are called.
HASH = "hash"
_RANGES = ("min", "max", "mean")


def _without_ranges(report: Report) -> Report:
    """``report`` without ranges and means of inputs and outputs, of which digests stay, and values of kernels."""
    given, place = report.case.inputs, report.localization
    if given is not None:
        case = replace(report.case, inputs=given.with_tensors(lambda tensor: replace(tensor, stats=None)))
        report = replace(report, case=case)
    if place is not None:
        report = replace(report, localization=replace(place, values=()))
    runs = (replace(run, result=as_object(_drop_ranges(run.result))) for run in report.runs)
    return replace(report, runs=tuple(runs))


def _drop_ranges(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_drop_ranges(one) for one in value]
    if isinstance(value, dict):
        return {key: _drop_ranges(one) for key, one in value.items() if key not in _RANGES}
    return value


def cannot_examine_reason(session: Session, diagnoses: tuple[Diagnosis, ...]) -> str | None:
    """The reason why there was nothing to examine, such as a missing file; None where there was something.

    A broken file is a finding instead.
    """
    # Imported only here: `classify` opens no case.
    from aotidoctor.triage.open_case import reference_problem

    case = session.case
    unread = {item.code: item.reason for item in session.not_checked if not item.is_fault}
    if "AD-READ-HOST" in unread and case.options.host is not None:
        return f"the host profile cannot be read: {unread['AD-READ-HOST']}"
    if "AD-READ-WEIGHTS" in unread:
        weights = case.options.weights or ""
        return unread["AD-READ-WEIGHTS"] if os.path.lexists(weights) else no_such_file(weights, "--weights")
    if "AD-READ-DATA" in unread:
        return unread["AD-READ-DATA"]
    if (reason := unread_reason(case)) is not None:
        return reason
    if case.artifact.kind is ArtifactKind.UNREADABLE:
        return f"{case.artifact.path}: {case.artifact.problem or 'unreadable'}"
    if (problem := reference_problem(case.options.reference)) is not None:
        return problem
    return None if diagnoses else _comparison_problem(session) or _plain_run_problem(session)


def unread_reason(case: Case) -> str | None:
    """Which of package and inputs is not there or exchanged with the other, and what was perhaps meant."""
    if case.artifact.kind is ArtifactKind.MISSING and not case.artifact.is_symlink:
        return no_such_file(case.artifact.path)
    if (error := case.inputs_error) is not None and (given := case.inputs_path) is not None:
        if error.kind in ("missing", "unreadable"):
            return str(error) if os.path.lexists(given) else no_such_file(given, "--inputs")
        if error.observed == A_PACKAGE and case.artifact.kind not in RUNNABLE_KINDS:
            package = case.artifact.path
            return f"{package} is no package, but {given} is one: did you mean {given} --inputs {package}?"
    return None


def _comparison_problem(session: Session) -> str | None:
    """The reason why there are no numbers to compare with: without any, "healthy" must not mean "the same numbers"."""
    unasked = next((item.reason for item in session.not_checked if item.name == "stage eager"), None)
    if unasked is not None:
        return f"--model: {unasked}"
    found = {(item.code, item.kind): item.observed for item in session.findings}
    # Codes and kinds of the probe that compares with the reference.
    unavailable, raises = ("AD-RUN-011", "unavailable"), ("AD-RUN-011", "raises")
    if unavailable in found:
        return f"no comparison with the reference: {found[unavailable]}"
    # Another program takes other inputs: that it raises says nothing about the package.
    useless = raises in found and ("AD-REF-001", "another-program") in found
    if useless and not any(item.severity is Severity.ERROR for item in session.findings):
        return f"no comparison with the reference, which is a different program: {found[raises]}"
    return None


def _plain_run_problem(session: Session) -> str | None:
    """The reason why a command that runs the package learned nothing; None where it did, or was not to run it."""
    if session.outcomes:
        from aotidoctor.probes.payload import run_of
        from aotidoctor.probes.probe import succeeded

        plain = session.outcomes.get("plain_run")
        observed = plain is not None and succeeded(plain) and run_of(plain).observe
        faults = [item.reason for item in session.not_checked if item.name == "plain_run" and item.is_fault]
        if faults and not observed:
            return faults[0]
    if session.runner is None or session.out_of_time or "plain_run" in session.case.options.skip_rungs:
        return None
    endings = [outcome.ending for outcome in session.runs]
    if endings:
        from aotidoctor.model.run import NotStarted

        not_started = [ending for ending in endings if isinstance(ending, NotStarted)]
        return f"nothing was run: {not_started[0].reason}" if len(not_started) == len(endings) else None
    reason = next((item.reason for item in session.not_checked if item.name == "plain_run"), None)
    return f"nothing was run: {reason}" if reason not in (None, "interrupted") else None


def _of_plugins(added: Extensions) -> dict[str, str]:
    """The plugins that took part, and the facts that they add about the host."""
    facts = {f"host.{name}": value for name, value in added.host_facts.items()}
    return {"plugins": added.took_part, **facts} if added.took_part else facts
