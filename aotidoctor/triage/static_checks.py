"""Hold the state of an examination, and run every check in order under one guard.

A check that raises becomes ``NotChecked`` with its traceback, and the session goes on. The half with child runs is
``aotidoctor.triage.run_probes``; nothing of it is needed, or imported, by a command that executes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol

from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.evidence import FAILED_HERE, Evidence, NotChecked, Severity, describe_failure
from aotidoctor.model.record import record
from aotidoctor.model.report import Event, EventKind, current_extensions
from aotidoctor.triage.limit import limit_not_checked

if TYPE_CHECKING:
    from aotidoctor.checks.check import Check
    from aotidoctor.model.case import Case
    from aotidoctor.model.report import Diagnosis
    from aotidoctor.model.run import Outcome, Request
    from aotidoctor.triage.treated_run import TreatedRun


# A child that could not even be given this much time would tell nothing.
LEAST_TIMEOUT_S = 1.0
# Of a run whose answer could not be read.
_RUN = "AD-RUN-001"
# Of one check: nobody reads more, and a treatment that needs more is for another model than anybody has.
MOST_FINDINGS = 300


class Runs(Protocol):
    """What the ladder needs of a runner."""

    def run(self, request: Request) -> Outcome:
        """Run one request to its end."""


@record(kw_only=False, frozen=False)
class Session:
    """What is known so far.

    ``deadline`` is on the monotonic clock, None without ``--budget``. ``judge_effect`` tells of a finished run whether
    its setting acted.
    """

    case: Case
    runner: Runs | None
    on_event: Callable[[Event], None] = lambda _event: None
    judge_effect: Callable[[Case, Outcome], Outcome] = lambda _case, outcome: outcome
    deadline: float | None = None
    findings: list[Evidence] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    runs: list[Outcome] = field(default_factory=list)
    out_of_time: bool = False
    trials: list[TreatedRun] = field(default_factory=list)

    def add(self, found: Sequence[Evidence], not_checked: Sequence[NotChecked] = ()) -> None:
        """Keep findings and give each its id; and what was not checked besides."""
        for item in found:
            self.findings.append(replace(item, id=f"E{len(self.findings) + 1}"))
        self.not_checked += not_checked

    def leave_out(self, code: str, name: str, reason: str) -> None:
        """Keep why something was not looked at."""
        self.not_checked.append(NotChecked(code=code, name=name, reason=reason))

    def begins(self, name: str) -> None:
        """A line for whoever watches: a run of ``name`` begins."""
        self.on_event(Event(kind=EventKind.PROBE_START, name=name))

    def ended(
        self, name: str, seconds: float, verdict: str, *, ok: bool | None = None, kind: EventKind = EventKind.PROBE_END
    ) -> None:
        """Likewise: what came of it."""
        self.on_event(Event(kind=kind, name=name, seconds=seconds, verdict=verdict, ok=ok))

    def refusal(self) -> str:
        """Why ``run`` gave no outcome."""
        return "the time budget is spent" if self.out_of_time else "no child processes in this command"

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
        outcome = self.judge_effect(self.case, self.runner.run(replace(request, timeout=allowed)))
        self.runs.append(outcome)
        for place in outcome.malformed:
            self.leave_out(_RUN, request.probe, f"{FAILED_HERE}: the child's answer: {place}")
        return outcome


def run_checks(session: Session) -> None:
    """All static checks in order; one whose needs failed is not asked.

    What a check found stands, also where a part of the wrapper that it reads was not understood; that part is reported.
    """
    # Not at the top: importing them all is most of the start of `env` and `inspect`.
    from aotidoctor.checks.registry import CHECKS

    failed: set[str] = set()
    for check in (*CHECKS, *current_extensions().checks):
        blocked = [name for name in check.needs if name in failed]
        result = _pointless(check, blocked[0]) if blocked else ask_check(check, session)
        missed = None if blocked else check.overlooked(session.case)
        session.not_checked += [missed] if missed is not None else []
        if isinstance(result, NotChecked):
            session.not_checked.append(result)
            if blocked:
                failed.add(check.name)
            continue
        session.add(result)
        if any(item.severity is Severity.ERROR for item in result):
            failed.add(check.name)


def _pointless(check: Check, blocked: str) -> NotChecked:
    return replace(check.unchecked(f"it depends on {blocked}, which failed"), moot=True)


def overlooked_by_checks(case: Case) -> list[NotChecked]:
    """What the checks could not see, as parts of the wrapper that they read were not understood."""
    from aotidoctor.checks.registry import CHECKS

    return [missed for missed in (check.overlooked(case) for check in CHECKS) if missed is not None]


def ask_check(check: Check, session: Session) -> Sequence[Evidence] | NotChecked:
    """One check, guarded."""
    try:
        found = check.run(session.case)
        if isinstance(found, NotChecked) or len(found) <= MOST_FINDINGS:
            return found
        more = f"{len(found) - MOST_FINDINGS:,} more findings of this check: not listed beyond {MOST_FINDINGS}"
        session.not_checked.append(check.unchecked(more))
        return found[:MOST_FINDINGS]
    except LimitReachedError as reached:
        session.out_of_time = True
        return limit_not_checked(check.name, reached)
    except Exception:  # noqa: BLE001 - the guard: a broken check must not cost the rest of the report
        return check.unchecked(describe_failure())


def name_causes(session: Session, *, refuted: tuple[str, ...] = ()) -> tuple[Diagnosis, ...]:
    """The causes of what was found; only the playbooks that speak of it are read."""
    loud = {item.code for item in session.findings if item.severity is not Severity.INFO}
    if not loud:
        return ()
    from aotidoctor.diagnosis.playbooks import load_playbooks
    from aotidoctor.diagnosis.rank import diagnose

    return diagnose(session.findings, load_playbooks(loud), refuted=refuted, case=session.case)


# Checks of file and host for another host: whether a package fits it.

FIT_STAGES = ("artifact", "host")


@record
class CheckAnswer:
    """One check and its answer. ``blocked`` is the check that failed before it, None where it was asked."""

    check: Check
    found: tuple[Evidence, ...] | NotChecked
    blocked: str | None = None


def ask_host(case: Case) -> tuple[CheckAnswer, ...]:
    """Every check of the stages that a host decides about, in order."""
    from aotidoctor.checks.registry import CHECKS

    session = Session(case=case, runner=None)
    failed: set[str] = set()
    asked = []
    for check in (check for check in CHECKS if check.stage in FIT_STAGES):
        blocked = next((name for name in check.needs if name in failed), None)
        found = check.unchecked(f"{blocked} failed") if blocked else ask_check(check, session)
        if blocked or (not isinstance(found, NotChecked) and any(item.severity is Severity.ERROR for item in found)):
            failed.add(check.name)
        result = found if isinstance(found, NotChecked) else tuple(found)
        asked.append(CheckAnswer(check=check, found=result, blocked=blocked))
    return tuple(asked)
