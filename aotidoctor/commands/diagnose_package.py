"""Examine one package with its inputs: what `run`, `check`, `localize`, `compare`, `inspect` and `env` share.

package ─► artifact ─► contract ─┐
inputs ──► inputs ───────────────┼─► case ─► checks ─► probes ─► diagnosis ─► treatment ─► report
host ────► host ─────────────────┘
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from aotidoctor.model.artifact import RUNNABLE_KINDS, Artifact, ArtifactKind
from aotidoctor.model.case import Case, Options
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.report import Event, EventKind, OnEvent, Report, current_extensions
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.triage import limit, open_case
from aotidoctor.triage.finish import Invocation, finish
from aotidoctor.triage.static_checks import Session, name_causes, overlooked_by_checks, run_checks

if TYPE_CHECKING:
    from aotidoctor.model.inputs import InputSet
    from aotidoctor.model.localization import Localization
    from aotidoctor.model.report import Diagnosis
    from aotidoctor.runner.runner import Runner

# Importing these takes seconds; the warm worker does it once, for all runs that compare with the reference.
REFERENCE_MODULES = ("torch.export.pt2_archive._package", "torch._export.serde.serialize")

NOT_EXECUTED = "`check` does not execute the package; use `aotidoctor run`"
HOST_UNREAD, WEIGHTS_UNREAD = "AD-READ-HOST", "AD-READ-WEIGHTS"
# Of the probe that compares with the reference, and of nothing else.
REFERENCE_UNAVAILABLE = ("AD-RUN-011", "unavailable")
# Another program, which takes other inputs: that it raises says nothing of the package.
REFERENCE_USELESS = frozenset((("AD-REF-001", "another-program"), ("AD-RUN-011", "raises")))


def diagnose(
    path: str,
    inputs_path: str | None,
    options: Options,
    *,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
    static_only: bool = False,
    command: str = "run",
    on_event: OnEvent | None = None,
    runner: Runner | None = None,
    live: InputSet | None = None,
) -> Report:
    """Examine a package with its inputs.

    ``static_only``: no child process, no torch, nothing executed. ``command`` is the name that the report gets;
    ``compare`` runs only what the comparison with the reference needs.
    ``runner`` may be given to examine several packages with one warm worker; the caller then closes it. ``live`` are
    inputs that are described already; to run them they need a file.
    """
    watch = Invocation("check" if static_only else command, argv)
    tell = on_event or (lambda _event: None)
    preload = REFERENCE_MODULES if options.reference is not None else ()
    with nullcontext() if static_only else runner_or_new(runner, environ, preload) as runs:
        tell(Event(kind=EventKind.STAGE, name="read"))
        start = None if runs is None else _prewarm(runs)
        case, unread = open_case.open_case(path, inputs_path, options, environ, on_artifact=start, live=live)
        deadline = None if options.budget is None else time.monotonic() + options.budget
        session = Session(case=case, runner=runs, on_event=tell, deadline=deadline, not_checked=unread)
        try:
            diagnoses, interrupted = _examine(session, command)
        finally:
            if runs is not None:
                runs.forget()
    return _report(session, diagnoses, watch, interrupted=interrupted)


def runner_or_new(
    given: Runner | None, environ: Mapping[str, str], preload: tuple[str, ...]
) -> AbstractContextManager[Runner]:
    """The runner of a caller, who closes it, or one for this question."""
    if given is not None:
        return nullcontext(given)
    # A command that starts no process does without its import.
    from aotidoctor.runner.runner import Runner

    return Runner(environ=environ, preload=preload)


def _prewarm(runner: Runner) -> Callable[[Artifact], None]:
    """Import torch in the child while the parent reads, as soon as it is clear that there is something to run."""

    def start(artifact: Artifact) -> None:
        if artifact.kind in RUNNABLE_KINDS and not (artifact.bad_crc or artifact.names_unsafe):
            runner.prewarm()

    return start


def _examine(session: Session, command: str) -> tuple[tuple[Diagnosis, ...], bool]:
    """The causes, and whether the session was interrupted."""
    if session.runner is not None:
        # Not needed, and not worth its import, where nothing is executed.
        from aotidoctor.triage import examine

        if current_extensions().setups:
            from aotidoctor.triage.run_probes import admit_plugin_setups

            admit_plugin_setups(session)
        return examine.compare_runs(session) if command == "compare" else examine.examine(session)
    session.case = open_case.with_library_texts(session.case, session.not_checked)
    run_checks(session)
    session.not_checked.append(NotChecked(code="AD-RUN", name="runs", reason=NOT_EXECUTED))
    return name_causes(session), False


def _report(
    session: Session, diagnoses: tuple[Diagnosis, ...], watch: Invocation, *, interrupted: bool = False
) -> Report:
    return finish(
        session,
        diagnoses,
        watch,
        stage=_stage(session, diagnoses),
        interrupted=interrupted,
        out_of_time=any(item.code == limit.LIMIT_CODE for item in session.not_checked),
        cannot_examine=_cannot_examine(session, diagnoses),
        localization=_localization(session, failed=bool(diagnoses)),
    )


def _localization(session: Session, *, failed: bool) -> Localization | None:
    """The place of the failure, as far as the runs showed it."""
    if not session.outcomes:
        return None
    # Not needed, and not worth its import, where nothing was executed.
    from aotidoctor.localize.culprit import localize

    return localize(session.case, session.findings, session.outcomes, failed=failed)


def _cannot_examine(session: Session, diagnoses: tuple[Diagnosis, ...]) -> str | None:
    """Why there was nothing to examine: a path that leads nowhere. A broken file is a finding instead."""
    case = session.case
    unread = {item.code: item.reason for item in session.not_checked if not item.is_fault}
    if HOST_UNREAD in unread and case.options.host is not None:
        return f"the host profile cannot be read: {unread[HOST_UNREAD]}"
    if WEIGHTS_UNREAD in unread:
        return unread[WEIGHTS_UNREAD]
    if case.artifact.kind is ArtifactKind.MISSING and not case.artifact.is_symlink:
        return f"no such file: {case.artifact.path}"
    if case.inputs_error is not None and case.inputs_error.kind == "missing":
        return f"no such file: {case.inputs_path}"
    if case.artifact.kind is ArtifactKind.UNREADABLE and not diagnoses:
        return case.artifact.problem or "unreadable"
    if open_case.is_reference_missing(case.options.reference):
        return f"no such file: {case.options.reference}"
    if diagnoses:
        return None
    return _not_compared(session) or (_failed_here(session) if session.outcomes else None) or _nothing_run(session)


def _not_compared(session: Session) -> str | None:
    """Why there are no numbers to compare with. Without any, nobody may read "healthy" as "the same numbers"."""
    found = {(item.code, item.kind): item.observed for item in session.findings}
    if REFERENCE_UNAVAILABLE in found:
        return f"no comparison with the reference: {found[REFERENCE_UNAVAILABLE]}"
    failed = any(item.severity is Severity.ERROR for item in session.findings)
    if found.keys() >= REFERENCE_USELESS and not failed:
        return f"no comparison with the reference, which is a different program: {found['AD-RUN-011', 'raises']}"
    return None


def _failed_here(session: Session) -> str | None:
    """What of the plain run could not be looked at, by a failure of aotidoctor's own."""
    from aotidoctor.probes.payload import run_of
    from aotidoctor.probes.probe import succeeded

    plain = session.outcomes.get("plain_run")
    if succeeded(plain) and plain is not None and run_of(plain).observe:
        return None
    return next((item.reason for item in session.not_checked if item.name == "plain_run" and item.is_fault), None)


def _nothing_run(session: Session) -> str | None:
    """Why a command that runs ran nothing, by no wish of the user's; None where it did."""
    if session.runner is None or session.out_of_time or "plain_run" in session.case.options.skip_rungs:
        return None
    endings = [outcome.ending for outcome in session.runs]
    if endings:
        from aotidoctor.model.run import NotStarted

        all_lost = all(isinstance(ending, NotStarted) for ending in endings)
        return f"nothing was run: {endings[0].reason}" if all_lost and isinstance(endings[0], NotStarted) else None
    reason = next((item.reason for item in session.not_checked if item.name == "plain_run"), None)
    return f"nothing was run: {reason}" if reason not in (None, "interrupted") else None


def _stage(session: Session, diagnoses: tuple[Diagnosis, ...]) -> str | None:
    if diagnoses:
        return diagnoses[0].stage or None
    plain = session.outcomes.get("plain_run")
    if plain is None or not any(item.severity is Severity.ERROR for item in session.findings):
        return None
    return "load" if plain.stage in ("start", "import", "setup", "inputs", "load", "after_load") else "run"


def inspect(path: str, options: Options, *, argv: tuple[str, ...] = (), environ: Mapping[str, str]) -> Report:
    """What is in the package, its contract and its needs; executes nothing, and judges the artifact only."""
    watch = Invocation("inspect", argv)
    case, unread = open_case.open_case(path, None, options, environ)
    case = open_case.with_library_texts(case, unread)
    session = Session(case=case, runner=None)
    run_checks(session)
    # Which of several models is meant is no fault of a package that nobody calls.
    session.findings = [
        (replace(item, severity=Severity.INFO) if (item.code, item.kind) == ("AD-ART-011", "several") else item)
        for item in session.findings
        if item.code.startswith("AD-ART")
    ]
    session.not_checked = [item for item in session.not_checked if item.code.startswith("AD-ART")]
    session.not_checked += [*unread, *overlooked_by_checks(case)]
    return _report(session, name_causes(session), watch)


def env(*, argv: tuple[str, ...] = (), environ: Mapping[str, str], profile: str | None = None) -> Report:
    """What this host offers, or the one of a profile.

    Raises:
        UsageError: there is no such profile.
        CannotExamineError: it cannot be read.
    """
    watch = Invocation("env", argv)
    if profile is None:
        host = read_host(artifact=None, environ=environ)
    else:
        host = open_case.host_of(Options(host=profile), None, environ)
    case = Case(artifact=Artifact(path="", kind=ArtifactKind.OTHER, size=0), host=host)
    return _report(Session(case=case, runner=None), (), watch)


def plan(
    path: str,
    inputs_path: str | None,
    options: Options,
    *,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
    live: InputSet | None = None,
) -> Report:
    """What ``run`` would ask, and why; executes nothing."""
    from aotidoctor.triage.run_probes import check_probe_names, plan_lines

    watch = Invocation("run", argv)
    case, unread = open_case.open_case(path, inputs_path, options, environ, live=live)
    check_probe_names(case)
    session = Session(case=case, runner=None, not_checked=unread)
    run_checks(session)
    report = _report(session, name_causes(session), watch)
    return replace(report, plan=plan_lines(session))
