"""State of an examination: findings, outcomes and runs so far, and the budget that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol

from aotidoctor.model.evidence import FAILED_HERE, Evidence, NotChecked, describe_failure
from aotidoctor.model.record import record
from aotidoctor.model.report import Event, EventKind

if TYPE_CHECKING:
    from aotidoctor.model.case import Case
    from aotidoctor.model.report import Treatment
    from aotidoctor.model.run import Outcome, Request
    from aotidoctor.probes.probe import History

# A child that gets less time than this cannot finish anything.
LEAST_TIMEOUT_S = 1.0


class Runs(Protocol):
    """The part of a runner that an examination uses."""

    def run(self, request: Request) -> Outcome:
        """Run one request to its end."""


@record
class TreatedRun:
    """One treated run, compared with its baseline.

    ``healed`` is defined in ``aotidoctor.triage.treated_run``; ``harmless`` is true when nothing changed although the
    treatment preserves the values.
    """

    treatment: Treatment
    baseline: Outcome
    outcome: Outcome
    healed: bool
    harmless: bool
    how: str


@record(kw_only=False, frozen=False)
class Session:
    """State of one examination.

    ``deadline`` is in seconds of the monotonic clock, None without ``--budget``. ``judge_effect`` adds to a finished
    run whether its setting took effect.
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
        """Add findings, each with its id, and what was not checked."""
        for item in found:
            self.findings.append(replace(item, id=f"E{len(self.findings) + 1}"))
        self.not_checked += not_checked

    def leave_out(self, code: str, name: str, reason: str) -> None:
        """Add the reason why something was not checked."""
        self.not_checked.append(NotChecked(code=code, name=name, reason=reason))

    @contextmanager
    def guard(self, code: str, name: str) -> Iterator[None]:
        """Turn an exception into ``NotChecked``: a fault of one check or probe must not cost the rest of the report."""
        try:
            yield
        except Exception:  # noqa: BLE001 - see above
            self.leave_out(code, name, describe_failure())

    def begins(self, name: str) -> None:
        """Report that a run called ``name`` begins."""
        self.on_event(Event(kind=EventKind.PROBE_START, name=name))

    def ended(
        self, name: str, seconds: float, verdict: str, *, ok: bool | None = None, kind: EventKind = EventKind.PROBE_END
    ) -> None:
        """Report the end of a run and its verdict."""
        self.on_event(Event(kind=kind, name=name, seconds=seconds, verdict=verdict, ok=ok))

    def refusal(self) -> str:
        """Reason why ``run`` returned None."""
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
            self.leave_out("AD-RUN-001", request.probe, f"{FAILED_HERE}: the child's answer: {place}")
        return outcome

    def history(self) -> History:
        """What probes may see: outcomes and findings so far."""
        # Not at the top: it imports every probe, which a command that executes nothing does not need.
        from aotidoctor.probes.probe import History

        return History(outcomes=dict(self.outcomes), findings=tuple(self.findings))
