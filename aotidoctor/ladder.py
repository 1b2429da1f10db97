"""Climb: ask each check, then each probe, under one guard, and keep what was found and what was not looked at.

The guard is here: a check or probe that raises becomes ``NotChecked`` with its traceback, and the climb goes on.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from aotidoctor.checks import CHECKS, Check
from aotidoctor.model.case import Case
from aotidoctor.model.errors import UsageError
from aotidoctor.model.event import Event, EventKind
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.run import NotStarted, Outcome, Request
from aotidoctor.probes import PROBES, History, Probe, Reuse, succeeded
from aotidoctor.probes.effects import with_effect

# A child that could not even be given this much time would tell nothing.
LEAST_TIMEOUT_S = 1.0
# Checks whose answer depends on the number of threads.
THREAD_CHECKS = ("threads_exceed_build",)


class Runs(Protocol):
    """What the ladder needs of a runner."""

    def run(self, request: Request) -> Outcome:
        """Run one request to its end."""


@dataclass(slots=True)
class Climb:
    """What is known so far. ``deadline`` is on the monotonic clock, None without ``--budget``."""

    case: Case
    runner: Runs | None
    on_event: Callable[[Event], None] = lambda _event: None
    deadline: float | None = None
    findings: list[Evidence] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    runs: list[Outcome] = field(default_factory=list)
    out_of_time: bool = False

    def add(self, found: Sequence[Evidence]) -> None:
        """Keep findings and give each its id."""
        for item in found:
            self.findings.append(replace(item, id=f"E{len(self.findings) + 1}"))

    def history(self) -> History:
        """What probes may see."""
        return History(outcomes=dict(self.outcomes), findings=tuple(self.findings))

    def run(self, request: Request) -> Outcome | None:
        """Run a request within the budget; None when the budget is spent."""
        if self.runner is None:
            return None
        allowed = request.timeout
        if self.deadline is not None:
            allowed = min(allowed, self.deadline - time.monotonic())
        if allowed < LEAST_TIMEOUT_S:
            self.out_of_time = True
            return None
        outcome = with_effect(self.case, self.runner.run(replace(request, timeout=allowed)))
        self.runs.append(outcome)
        return outcome


def run_checks(climb: Climb) -> None:
    """All static checks in order; one whose needs failed is not asked."""
    failed: set[str] = set()
    for check in CHECKS:
        blocked = [name for name in check.needs if name in failed]
        result = check.unchecked(f"it depends on {blocked[0]}, which failed") if blocked else _ask_check(check, climb)
        if isinstance(result, NotChecked):
            climb.not_checked.append(result)
            if blocked:
                failed.add(check.name)
            continue
        climb.add(result)
        if any(item.severity is Severity.ERROR for item in result):
            failed.add(check.name)


def _ask_check(check: Check, climb: Climb) -> Sequence[Evidence] | NotChecked:
    try:
        return check.run(climb.case)
    except Exception:  # noqa: BLE001 - the guard: a broken check must not cost the rest of the report
        return check.unchecked(f"aotidoctor's own error: {traceback.format_exc(limit=-4)}")


def run_probes(climb: Climb) -> None:
    """All probes in order, each only if its answer can change the diagnosis."""
    for probe in PROBES:
        _guard_probe(probe, climb)


def _guard_probe(probe: Probe, climb: Climb) -> None:
    try:
        _ask_probe(probe, climb)
    except Exception:  # noqa: BLE001 - the same guard
        reason = f"aotidoctor's own error: {traceback.format_exc(limit=-4)}"
        climb.not_checked.append(NotChecked(code=probe.code, name=probe.name, reason=reason))


def _ask_probe(probe: Probe, climb: Climb) -> None:
    plan = _plan(probe, climb)
    match plan:
        case NotChecked():
            climb.not_checked.append(plan)
        case Reuse(probe=name):
            climb.add(probe.read(climb.case, climb.history(), climb.outcomes[name]))
        case Request():
            _run_probe(probe, plan, climb)


def _plan(probe: Probe, climb: Climb) -> Request | Reuse | NotChecked:
    options = climb.case.options
    if probe.name in options.skip_rungs:
        return NotChecked(code=probe.code, name=probe.name, reason="--skip-rungs")
    # The plain run is what everything else is compared with.
    if options.rungs is not None and probe.name not in (*options.rungs, "plain_run"):
        return NotChecked(code=probe.code, name=probe.name, reason="not among --rungs")
    return probe.plan(climb.case, climb.history())


def _run_probe(probe: Probe, request: Request, climb: Climb) -> None:
    climb.on_event(Event(kind=EventKind.PROBE_START, name=probe.name))
    outcome = climb.run(request)
    if outcome is None:
        reason = "the time budget is spent" if climb.out_of_time else "no child processes in this command"
        climb.not_checked.append(NotChecked(code=probe.code, name=probe.name, reason=reason))
        return
    climb.outcomes[probe.name] = outcome
    _correct_threads(climb, outcome)
    found = list(probe.read(climb.case, climb.history(), outcome))
    climb.add(found)
    verdict = found[0].observed if found else "as expected"
    fine = not any(item.severity is Severity.ERROR for item in found)
    climb.on_event(Event(kind=EventKind.PROBE_END, name=probe.name, seconds=outcome.seconds, verdict=verdict, ok=fine))


def _correct_threads(climb: Climb, outcome: Outcome) -> None:
    """A setup file may set the thread count: what the child saw replaces what was assumed, and is checked again."""
    threads = outcome.result.get("threads")
    host = climb.case.host
    if not isinstance(threads, int) or threads == (climb.case.options.threads or host.threads):
        return
    climb.case = replace(climb.case, host=replace(host, threads=threads))
    known = {item.code for item in climb.findings}
    for check in (check for check in CHECKS if check.name in THREAD_CHECKS and check.code not in known):
        result = _ask_check(check, climb)
        if not isinstance(result, NotChecked):
            climb.add(result)


def check_rung_names(case: Case) -> None:
    """UsageError for a rung that does not exist."""
    known = [probe.name for probe in PROBES]
    for name in (*(case.options.rungs or ()), *case.options.skip_rungs):
        if name not in known:
            raise UsageError(f"--rungs: no rung is called {name!r}; there are {', '.join(known)}")


def plan_lines(climb: Climb) -> tuple[str, ...]:
    """What would be asked, and why, without running anything."""
    lines = []
    for probe in PROBES:
        match _plan(probe, climb):
            case NotChecked(reason=reason) if probe.name == "plain_run" or reason.startswith(("--", "not among")):
                lines.append(f"{probe.name}: no - {reason}")
            case NotChecked():
                lines.append(f"{probe.name}: {probe.asked_when} - {probe.asks}")
            case _:
                lines.append(f"{probe.name}: yes - {probe.asks}")
    return tuple(lines)


def started(outcome: Outcome | None) -> bool:
    """There was a process that imported torch."""
    return outcome is not None and not isinstance(outcome.ending, NotStarted)


__all__ = ["Climb", "check_rung_names", "plan_lines", "run_checks", "run_probes", "started", "succeeded"]
