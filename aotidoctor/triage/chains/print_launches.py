"""The last probe for CUDA: compile the program again so that it prints its launches, and see which one is the last.

A chain of up to seven child runs, the most expensive question of all: a compile with the printer at level 3 (or a
package kept from an earlier call), the failing call twice as it is and twice with blocking launches; where that names a
kernel, a compile with level 2 for that kernel alone, and one call. What is asked when, and what the answers mean, is in
``probes.printed_launches``.
"""

from __future__ import annotations

from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes import printed_launches
from aotidoctor.triage.chains.compile_cache import CompileCache, open_cache
from aotidoctor.triage.chains.print_values import compiled, read
from aotidoctor.triage.chains.recompile import asked
from aotidoctor.triage.run_probes import history_of
from aotidoctor.triage.session import Session

PROBE = printed_launches.PROBE


def print_launches(session: Session, cache: CompileCache | None = None) -> None:
    """Ask it, if no cheaper probe named the kernel; adds its findings."""
    asked(session, PROBE, lambda plan: _print_launches(session, cache or open_cache(), plan))


def _print_launches(session: Session, cache: CompileCache, plan: Request) -> None:
    kept = compiled(session, cache, PROBE, plan)
    if kept is None:
        return
    requests = printed_launches.call_requests(session.case, history_of(session), str(kept.package))
    outcomes = [outcome for request in requests if (outcome := _called(session, request)) is not None]
    if len(outcomes) < len(requests):
        session.leave_out(PROBE.code, PROBE.name, session.refusal())
        return
    found = read(session, PROBE, outcomes[-1], kept.seconds + sum(outcome.seconds for outcome in outcomes))
    if found.kind in printed_launches.NAMED and found.subject is not None:
        _print_values(session, cache, found.subject)


def _print_values(session: Session, cache: CompileCache, kernel: str) -> None:
    """What the kernel that fails got."""
    kept = compiled(session, cache, PROBE, printed_launches.values_request(session.case, kernel))
    if kept is None:
        return
    level, name = printed_launches.PRINT_VALUES, printed_launches.VALUES
    request = printed_launches.call_request(session.case, history_of(session), str(kept.package), level, name)
    outcome = _called(session, request)
    if outcome is None:
        session.leave_out(PROBE.code, name, session.refusal())
        return
    read(session, PROBE, outcome, kept.seconds + outcome.seconds)


def _called(session: Session, request: Request) -> Outcome | None:
    outcome = session.run(request)
    if outcome is not None:
        session.outcomes[request.probe] = outcome
    return outcome
