"""Cut the inputs of a failing call as far as the failure stays: one child run per question.

What is asked next is decided in ``localize.smaller``; what counts as the same failure in ``probes.shrink``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.localize.smaller import Part, Parts, Size, Smallest, cuts, sizes_of, smallest, steps_of
from aotidoctor.model.jobs import changed
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes import shrink
from aotidoctor.triage.chains.recompile import asked
from aotidoctor.triage.session import Session

PROBE = shrink.PROBE


@dataclass(slots=True)
class _Asked:
    """The search so far: the last run that failed alike, and what it was given."""

    plan: Request
    sizes: Sequence[Size]
    wanted: shrink.Signature
    last: Outcome
    parts: Parts
    runs: int = 0
    seconds: float = 0.0
    answers: dict[tuple[tuple[str, Part], ...], bool] = field(default_factory=dict)


def shrink_inputs(session: Session) -> None:
    """Ask it; adds its finding."""
    if session.case.options.shrink:
        asked(session, PROBE, lambda plan: _shrink(session, plan))


def _shrink(session: Session, plan: Request) -> None:
    plain = session.outcomes["plain_run"]
    wanted = shrink.signature_of(session.case, plain)
    if wanted is None:
        return
    sizes = sizes_of(session.case)
    whole = {one.name: Part(start=0, size=one.value) for one in sizes}
    search = _Asked(plan=plan, sizes=sizes, wanted=wanted, last=plain, parts=whole)
    session.begins(PROBE.name)
    end = _search(session, search)
    if end is None:
        session.add([shrink.finding(sizes, Smallest(parts=search.parts), search.last, search.runs, finished=False)])
        session.leave_out(PROBE.code, PROBE.name, f"{session.refusal()}; not finished")
    else:
        session.add([shrink.finding(sizes, end, search.last, search.runs)])
    session.ended(PROBE.name, search.seconds, session.findings[-1].observed)


def _search(session: Session, asked: _Asked) -> Smallest | None:
    """To its end; None when there was no time for it."""
    search = smallest(asked.sizes)
    try:
        parts = next(search)
        while True:
            answer = _fails(session, asked, parts)
            if answer is None:
                return None
            parts = search.send(answer)
    except StopIteration as end:
        found: Smallest = end.value
        return found


def _fails(session: Session, asked: _Asked, parts: Parts) -> bool | None:
    """Whether the failure stays; None when it could not be asked."""
    key = tuple(parts.items())
    if key not in asked.answers:
        payload = changed(asked.plan.payload, {"treatment": tuple(steps_of(cuts(asked.sizes, parts)))})
        outcome = session.run(replace(asked.plan, payload=payload, purpose=_purpose(parts)))
        if outcome is None:
            return None
        asked.runs += 1
        asked.seconds += outcome.seconds
        failed = shrink.signature_of(session.case, outcome) == asked.wanted
        asked.answers[key] = failed
        if failed:
            asked.last, asked.parts = outcome, parts
    return asked.answers[key]


def _purpose(parts: Parts) -> str:
    return "with " + ", ".join(f"{name} = {part.size}" for name, part in parts.items())
