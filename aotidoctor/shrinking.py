"""Cut the inputs of a failing call as far as the failure stays: one child run per question.

What is asked next is decided in ``localize.smaller``; what counts as the same failure in ``probes.shrink``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.climb import Climb
from aotidoctor.ladder import plan_of
from aotidoctor.localize.smaller import Part, Parts, Size, Smallest, cuts, sizes_of, smallest, steps_of
from aotidoctor.model.event import Event, EventKind
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes import shrink
from aotidoctor.recompilation import guarded, say_why, tell

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


def shrink_inputs(climb: Climb) -> None:
    """Ask it; adds its finding."""
    guarded(climb, PROBE, lambda: _shrink(climb))


def _shrink(climb: Climb) -> None:
    if not climb.case.options.shrink:
        return
    plan = plan_of(PROBE, climb)
    if not isinstance(plan, Request):
        say_why(climb, plan)
        return
    plain = climb.outcomes["plain_run"]
    wanted = shrink.signature_of(climb.case, plain)
    if wanted is None:
        return
    sizes = sizes_of(climb.case)
    whole = {one.name: Part(start=0, size=one.value) for one in sizes}
    asked = _Asked(plan=plan, sizes=sizes, wanted=wanted, last=plain, parts=whole)
    climb.on_event(Event(kind=EventKind.PROBE_START, name=PROBE.name))
    end = _search(climb, asked)
    if end is None:
        climb.add([shrink.unfinished(sizes, asked.parts, asked.last, asked.runs)])
        climb.not_checked.append(
            NotChecked(code=PROBE.code, name=PROBE.name, reason=f"{climb.refusal()}; not finished")
        )
    else:
        climb.add([shrink.finding(sizes, end, asked.last, asked.runs)])
    tell(climb, PROBE.name, asked.seconds, climb.findings[-1].observed, ok=None)


def _search(climb: Climb, asked: _Asked) -> Smallest | None:
    """To its end; None when there was no time for it."""
    search = smallest(asked.sizes)
    try:
        parts = next(search)
        while True:
            answer = _fails(climb, asked, parts)
            if answer is None:
                return None
            parts = search.send(answer)
    except StopIteration as end:
        found: Smallest = end.value
        return found


def _fails(climb: Climb, asked: _Asked, parts: Parts) -> bool | None:
    """Whether the failure stays; None when it could not be asked."""
    key = tuple(parts.items())
    if key not in asked.answers:
        steps: list[JsonValue] = [*steps_of(cuts(asked.sizes, parts))]
        payload = {**asked.plan.payload, "treatment": steps}
        outcome = climb.run(replace(asked.plan, payload=payload, purpose=_purpose(parts)))
        if outcome is None:
            return None
        asked.runs += 1
        asked.seconds += outcome.seconds
        failed = shrink.signature_of(climb.case, outcome) == asked.wanted
        asked.answers[key] = failed
        if failed:
            asked.last, asked.parts = outcome, parts
    return asked.answers[key]


def _purpose(parts: Parts) -> str:
    return "with " + ", ".join(f"{name} = {part.size}" for name, part in parts.items())
