"""The flow, on one screen: read, check, probe, diagnose, treat, report.

package ─► artifact ─► contract ─┐
inputs ──► inputs ───────────────┼─► case ─► checks ─► probes ─► diagnosis ─► treatment ─► report
host ────► host ─────────────────┘
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timezone

from aotidoctor import casebook, confirmation
from aotidoctor.diagnosis import diagnose as name_causes
from aotidoctor.diagnosis import load_playbooks, signature
from aotidoctor.host import read_host
from aotidoctor.ladder import Climb, check_rung_names, plan_lines, run_checks, run_probes
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Options
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.event import Event, EventKind
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.report import Report
from aotidoctor.probes.payload import RUNNABLE
from aotidoctor.recovery import recover_contract
from aotidoctor.runner import Runner
from aotidoctor.version import __version__

OnEvent = Callable[[Event], None]
# Importing these takes seconds; the warm worker does it once, for all runs that compare with the reference.
REFERENCE_MODULES = ("torch.export.pt2_archive._package", "torch._export.serde.serialize")


def diagnose(
    path: str,
    inputs_path: str | None,
    options: Options,
    *,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
    static_only: bool = False,
    on_event: OnEvent | None = None,
    runner: Runner | None = None,
) -> Report:
    """Examine a package with its inputs.

    ``static_only``: no child process, no torch, nothing executed. ``runner`` may be given to examine several packages
    with one warm worker; the caller then closes it.
    """
    watch = _Watch("check" if static_only else "run", argv)
    tell = on_event or (lambda _event: None)
    preload = REFERENCE_MODULES if options.reference is not None else ()
    with Runner(environ=environ, preload=preload) if runner is None else nullcontext(runner) as runs:
        start = None if static_only else _prewarm(runs)
        tell(Event(kind=EventKind.STAGE, name="read"))
        case, unread = casebook.open_case(path, inputs_path, options, environ, on_artifact=start)
        check_rung_names(case)
        deadline = None if options.budget is None else time.monotonic() + options.budget
        climb = Climb(case=case, runner=None if static_only else runs, on_event=tell, deadline=deadline)
        climb.not_checked += unread
        diagnoses, state = _examine(climb)
    return _report(climb, diagnoses, watch, state)


def _prewarm(runner: Runner) -> Callable[[Artifact], None]:
    """Import torch in the child while the parent reads, as soon as it is clear that there is something to run."""

    def start(artifact: Artifact) -> None:
        if artifact.kind in RUNNABLE and not (artifact.bad_crc or artifact.names_unsafe):
            runner.prewarm()

    return start


def _examine(climb: Climb) -> tuple[tuple[Diagnosis, ...], dict[str, bool]]:
    """Checks, probes, causes, treatment. An interrupt ends it early and keeps what was found."""
    try:
        if climb.runner is not None and climb.case.contract is None:
            recover_contract(climb)
        run_checks(climb)
        if climb.runner is None:
            climb.not_checked.append(NotChecked(code="AD-RUN", name="runs", reason="check executes nothing: use run"))
            return _named(climb), {}
        run_probes(climb)
        diagnoses = _named(climb)
        verdicts = confirmation.treat(climb, diagnoses)
        if verdicts.harmless:
            climb.findings = confirmation.demote(climb.findings, verdicts.harmless)
        if verdicts.harmless or verdicts.refuted:
            diagnoses = _named(climb, refuted=verdicts.refuted)
        return confirmation.apply(diagnoses, verdicts), {}
    except KeyboardInterrupt:
        return _named(climb), {"interrupted": True}


def _named(climb: Climb, refuted: tuple[str, ...] = ()) -> tuple[Diagnosis, ...]:
    """The causes of what was found; only playbooks that speak of it are read."""
    loud = {item.code for item in climb.findings if item.severity is not Severity.INFO}
    if not loud:
        return ()
    return name_causes(climb.findings, load_playbooks(loud), refuted=refuted, case=climb.case)


class _Watch:
    """When it started and how it was called."""

    def __init__(self, command: str, argv: tuple[str, ...]) -> None:
        self.command = command
        self.argv = argv
        self.started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.at = time.monotonic()


def _report(climb: Climb, diagnoses: tuple[Diagnosis, ...], watch: _Watch, state: Mapping[str, bool]) -> Report:
    failed = any(item.severity is Severity.ERROR for item in climb.findings)
    partial = state.get("interrupted", False) or climb.out_of_time
    verdict = "problem" if diagnoses else "unknown" if failed or partial else "healthy"
    return Report(
        verdict=verdict,
        stage=_stage(climb, diagnoses),
        case=climb.case,
        diagnoses=diagnoses,
        findings=tuple(climb.findings),
        not_checked=tuple(climb.not_checked),
        runs=tuple(climb.runs),
        argv=watch.argv,
        command=watch.command,
        version=__version__,
        started=watch.started,
        seconds=time.monotonic() - watch.at,
        signature=signature(diagnoses, climb.findings, climb.runs) if diagnoses or failed else None,
        interrupted=state.get("interrupted", False),
        out_of_time=climb.out_of_time,
        cannot_examine=_cannot_examine(climb.case, diagnoses),
    )


def _cannot_examine(case: Case, diagnoses: tuple[Diagnosis, ...]) -> str | None:
    """Why there was nothing to examine: a path that leads nowhere. A broken file is a finding instead."""
    if case.artifact.kind is ArtifactKind.MISSING and not case.artifact.is_symlink:
        return f"no such file: {case.artifact.path}"
    if case.inputs_error is not None and case.inputs_error.kind == "missing":
        return f"no such file: {case.inputs_path}"
    if case.artifact.kind is ArtifactKind.UNREADABLE and not diagnoses:
        return case.artifact.problem or "unreadable"
    return None


def _stage(climb: Climb, diagnoses: tuple[Diagnosis, ...]) -> str | None:
    if diagnoses:
        return diagnoses[0].stage or None
    plain = climb.outcomes.get("plain_run")
    if plain is None or not any(item.severity is Severity.ERROR for item in climb.findings):
        return None
    return "load" if plain.stage in ("start", "import", "setup", "inputs", "load", "after_load") else "run"


def inspect(path: str, options: Options, *, argv: tuple[str, ...] = (), environ: Mapping[str, str]) -> Report:
    """What is in the package, its contract and its needs; executes nothing, and judges the artifact only."""
    watch = _Watch("inspect", argv)
    case, unread = casebook.open_case(path, None, options, environ)
    climb = Climb(case=case, runner=None)
    run_checks(climb)
    climb.findings = [item for item in climb.findings if item.code.startswith("AD-ART")]
    climb.not_checked = [item for item in climb.not_checked if item.code.startswith("AD-ART")] + unread
    return _report(climb, _named(climb), watch, {})


def env(*, argv: tuple[str, ...] = (), environ: Mapping[str, str]) -> Report:
    """What this host offers."""
    watch = _Watch("env", argv)
    host = read_host(artifact=None, environ=environ)
    case = Case(artifact=Artifact(path="", kind=ArtifactKind.OTHER, size=0), host=host)
    return _report(Climb(case=case, runner=None), (), watch, {})


def plan(
    path: str,
    inputs_path: str | None,
    options: Options,
    *,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
) -> Report:
    """What ``run`` would ask, and why; executes nothing."""
    watch = _Watch("run", argv)
    case, unread = casebook.open_case(path, inputs_path, options, environ)
    check_rung_names(case)
    climb = Climb(case=case, runner=None, not_checked=unread)
    run_checks(climb)
    report = _report(climb, _named(climb), watch, {})
    return replace(report, plan=plan_lines(climb))
