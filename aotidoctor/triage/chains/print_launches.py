"""The last probe for CUDA: compile the program again so that it prints its launches, and see which one is the last.

A chain of up to seven child runs, the most expensive question of all: a compile with the printer at level 3 (or a
package kept from an earlier call), the failing call twice as it is and twice with blocking launches; where that names a
kernel, a compile with level 2 for that kernel alone, and one call. What is asked when, and what the answers mean, is in
``probes.printed_launches``.
"""

from __future__ import annotations

from aotidoctor.model.event import Event, EventKind
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes import printed_launches
from aotidoctor.probes.recompiled import compile_of
from aotidoctor.triage.chains.compile_cache import CompileCache, Kept, open_cache
from aotidoctor.triage.chains.print_values import unfit
from aotidoctor.triage.chains.recompile import PATIENCE, guarded, obtain, say_why, tell
from aotidoctor.triage.run_probes import history_of, plan_of
from aotidoctor.triage.session import Session

PROBE = printed_launches.PROBE


def print_launches(session: Session, cache: CompileCache | None = None) -> None:
    """Ask it, if no cheaper probe named the kernel; adds its findings."""
    guarded(session, PROBE, lambda: _print_launches(session, cache or open_cache()))


def _print_launches(session: Session, cache: CompileCache) -> None:
    plan = plan_of(PROBE, session)
    if not isinstance(plan, Request):
        say_why(session, plan)
        return
    kept = _compiled(session, cache, plan)
    if kept is None:
        return
    requests = printed_launches.call_requests(session.case, history_of(session), str(kept.package))
    outcomes = [outcome for request in requests if (outcome := _called(session, request)) is not None]
    if len(outcomes) < len(requests):
        session.not_checked.append(NotChecked(code=PROBE.code, name=PROBE.name, reason=session.refusal()))
        return
    found = _read(session, outcomes[-1], kept.seconds + sum(outcome.seconds for outcome in outcomes))
    if found.kind in printed_launches.NAMED and found.subject is not None:
        _print_values(session, cache, found.subject)


def _print_values(session: Session, cache: CompileCache, kernel: str) -> None:
    """What the kernel that fails got."""
    kept = _compiled(session, cache, printed_launches.values_request(session.case, kernel))
    if kept is None:
        return
    level, name = printed_launches.PRINT_VALUES, printed_launches.VALUES
    request = printed_launches.call_request(session.case, history_of(session), str(kept.package), level, name)
    outcome = _called(session, request)
    if outcome is None:
        session.not_checked.append(NotChecked(code=PROBE.code, name=name, reason=session.refusal()))
        return
    _read(session, outcome, kept.seconds + outcome.seconds)


def _compiled(session: Session, cache: CompileCache, request: Request) -> Kept | None:
    """The package that ``request`` describes, where what it prints speaks of this one."""
    session.on_event(Event(kind=EventKind.PROBE_START, name=f"{PROBE.name}: {PATIENCE}"))
    kept = obtain(session, cache, request)
    reason = unfit(session, str(kept.package), compile_of(request).printer) if kept is not None else None
    if reason is None:
        return kept
    session.not_checked.append(NotChecked(code=PROBE.code, name=PROBE.name, reason=reason))
    return None


def _called(session: Session, request: Request) -> Outcome | None:
    outcome = session.run(request)
    if outcome is not None:
        session.outcomes[request.probe] = outcome
    return outcome


def _read(session: Session, outcome: Outcome, seconds: float) -> Evidence:
    found = list(PROBE.read(session.case, history_of(session), outcome))
    session.add(found)
    tell(session, PROBE.name, seconds, found[0].observed, ok=None)
    return found[0]
