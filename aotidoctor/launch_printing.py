"""The last rung for CUDA: compile the program again so that it prints its launches, and see which one is the last.

A chain of up to seven child runs, the most expensive question of all: a compile with the printer at level 3 (or a
package kept from an earlier call), the failing call twice as it is and twice with blocking launches; where that names a
kernel, a compile with level 2 for that kernel alone, and one call. What is asked when, and what the answers mean, is in
``probes.printed_launches``.
"""

from __future__ import annotations

from aotidoctor.climb import Climb
from aotidoctor.compile_cache import CompileCache, Kept, open_cache
from aotidoctor.ladder import history_of, plan_of
from aotidoctor.model.event import Event, EventKind
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.run import Outcome, Request
from aotidoctor.printing import unfit
from aotidoctor.probes import printed_launches
from aotidoctor.recompilation import PATIENCE, guarded, obtain, say_why, tell

PROBE = printed_launches.PROBE


def print_launches(climb: Climb, cache: CompileCache | None = None) -> None:
    """Ask it, if no cheaper rung named the kernel; adds its findings."""
    guarded(climb, PROBE, lambda: _print_launches(climb, cache or open_cache()))


def _print_launches(climb: Climb, cache: CompileCache) -> None:
    plan = plan_of(PROBE, climb)
    if not isinstance(plan, Request):
        say_why(climb, plan)
        return
    kept = _compiled(climb, cache, plan)
    if kept is None:
        return
    requests = printed_launches.call_requests(climb.case, history_of(climb), str(kept.package))
    outcomes = [outcome for request in requests if (outcome := _called(climb, request)) is not None]
    if len(outcomes) < len(requests):
        climb.not_checked.append(NotChecked(code=PROBE.code, name=PROBE.name, reason=climb.refusal()))
        return
    found = _read(climb, outcomes[-1], kept.seconds + sum(outcome.seconds for outcome in outcomes))
    if found.kind in printed_launches.NAMED and found.subject is not None:
        _print_values(climb, cache, found.subject)


def _print_values(climb: Climb, cache: CompileCache, kernel: str) -> None:
    """What the kernel that fails got."""
    kept = _compiled(climb, cache, printed_launches.values_request(climb.case, kernel))
    if kept is None:
        return
    level, name = printed_launches.PRINT_VALUES, printed_launches.VALUES
    request = printed_launches.call_request(climb.case, history_of(climb), str(kept.package), level, name)
    outcome = _called(climb, request)
    if outcome is None:
        climb.not_checked.append(NotChecked(code=PROBE.code, name=name, reason=climb.refusal()))
        return
    _read(climb, outcome, kept.seconds + outcome.seconds)


def _compiled(climb: Climb, cache: CompileCache, request: Request) -> Kept | None:
    """The package that ``request`` describes, where what it prints speaks of this one."""
    climb.on_event(Event(kind=EventKind.PROBE_START, name=f"{PROBE.name}: {PATIENCE}"))
    kept = obtain(climb, cache, request)
    reason = unfit(climb, str(kept.package), request.payload["printer"]) if kept is not None else None
    if reason is None:
        return kept
    climb.not_checked.append(NotChecked(code=PROBE.code, name=PROBE.name, reason=reason))
    return None


def _called(climb: Climb, request: Request) -> Outcome | None:
    outcome = climb.run(request)
    if outcome is not None:
        climb.outcomes[request.probe] = outcome
    return outcome


def _read(climb: Climb, outcome: Outcome, seconds: float) -> Evidence:
    found = list(PROBE.read(climb.case, history_of(climb), outcome))
    climb.add(found)
    tell(climb, PROBE.name, seconds, found[0].observed, ok=None)
    return found[0]
