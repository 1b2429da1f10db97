"""Probe by probe: how often does the call fail, and how?

What it does
    Compares the outcomes of all CUDA probes: how many runs of each probe failed, in what way, and whether its setting
    took effect. If the failure was gone with blocking launches, the plain run and that probe are first repeated twice
    each, to exclude chance.

Why it matters
    The pattern itself is evidence. A failure that always occurs, but never when each launch is waited for, is a race or
    a missing ordering. A failure that moves to a different kernel without the caching allocator is an access beyond a
    buffer, into the slack that the allocator left there.

Example:
    plain_run 3 of 3, cuda_blocking 0 of 3: observed gone with blocking launches, expected the same outcome in all runs

When it is wrong
    Three runs that agree may agree by chance. Waiting also changes the timing: a fault that needs a full queue also
    disappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.model.run import NotStarted, Outcome, Request
from aotidoctor.probes.cuda_probe import place_of, symptom_of, why_not
from aotidoctor.probes.probe import History, Plan, Probe, Reuse, evidence, succeeded, unasked

CODE, NAME = "AD-RUN-029", "rung_table"
PLAIN, BLOCKING, UNCACHED = "plain_run", "cuda_blocking", "cuda_no_caching"
# The probes in the order in which they are asked; names of variants and tools follow these.
ORDER = (PLAIN, "check_inputs", BLOCKING, UNCACHED, "launch_trace", "core_dump", "sanitizer", "cuda_variants")
# Under these the same failure says something of timing; others change more than that.
REPEATS = 2
ENOUGH = 3


@record
class FailureRate:
    """One probe: ``failed`` of ``runs`` runs, how (empty when none did), and where, as far as that is known."""

    probe: str
    runs: int
    failed: int
    seen: tuple[str, ...]
    places: tuple[str, ...]
    took_effect: bool | None


def plan(case: Case, history: History) -> Plan:
    """The repetitions that decide, then the table from all there is."""
    reason = why_not(case, history)
    if reason is not None:
        return unasked(CODE, NAME, reason)
    if not any(name in history.outcomes for name in (BLOCKING, UNCACHED, "launch_trace")):
        return unasked(CODE, NAME, "no other probe was run to compare with")
    return (*_repeats(history), Reuse(probe=PLAIN))


def _repeats(history: History) -> tuple[Request | NotChecked, ...]:
    blocking = history.outcomes.get(BLOCKING)
    if blocking is None or not succeeded(blocking) or blocking.took_effect is False:
        return ()
    return tuple(
        replace(
            history.outcomes[probe].request, probe=f"{probe}#{number}", purpose="repeated: is the outcome the same?"
        )
        for number in range(2, REPEATS + 2)
        for probe in (PLAIN, BLOCKING)
    )


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """Of a repetition nothing; of all: vanishes-blocking, moves-uncached, flaky, stable or undecided."""
    if outcome.request.probe != PLAIN:
        return []
    rows = rows_of(case, history)
    kind, facts = verdict_of(rows), _facts(rows)
    # Without the cache it fails where it goes wrong, and not where the damage is stumbled over.
    kernel = facts.get("kernel") if kind == "moves-uncached" else None
    return [
        evidence(
            CODE,
            kind,
            _SEVERITY.get(kind, Severity.INFO),
            outcome,
            subject=str(kernel) if kernel else None,
            observed=f"{_WORDS[kind]}: {', '.join(f'{row.probe} {row.failed} of {row.runs}' for row in rows)}",
            expected="the same outcome in all runs",
            facts=facts,
        )
    ]


# The first two say why the call fails, the third only how.
_SEVERITY = {
    "vanishes-blocking": Severity.ERROR,
    "moves-uncached": Severity.ERROR,
    "flaky": Severity.WARN,
}
_WORDS = {
    "vanishes-blocking": "gone with blocking launches, a race or a missing ordering",
    "moves-uncached": "at a different call without the caching allocator: beyond the end of a buffer",
    "flaky": "intermittent, with nothing changed",
    "stable": "the same in every probe",
    "undecided": "inconclusive",
}


def rows_of(case: Case, history: History) -> tuple[FailureRate, ...]:
    """The table, in the order of the ladder."""
    groups: dict[str, list[Outcome]] = {}
    for name, outcome in history.outcomes.items():
        probe = name.partition("#")[0]
        if probe.startswith(ORDER) and not isinstance(outcome.ending, NotStarted):
            groups.setdefault(probe, []).append(outcome)
    place = {name: index for index, name in enumerate(ORDER)}
    ordered = sorted(groups, key=lambda probe: min(place[name] for name in ORDER if probe.startswith(name)))
    return tuple(_row(case, history, probe, groups[probe]) for probe in ordered)


def _row(case: Case, history: History, probe: str, outcomes: Sequence[Outcome]) -> FailureRate:
    failed = [outcome for outcome in outcomes if not succeeded(outcome)]
    places = [place for outcome in failed if (place := _place(case, history, probe, outcome)) is not None]
    effects = [outcome.took_effect for outcome in outcomes]
    return FailureRate(
        probe=probe,
        runs=len(outcomes),
        failed=len(failed),
        seen=tuple(dict.fromkeys(_failure_words(case, history, probe, outcome) for outcome in failed)),
        places=tuple(dict.fromkeys(places)),
        took_effect=False if False in effects else None if None in effects else True,
    )


def _failure_words(case: Case, history: History, probe: str, outcome: Outcome) -> str:
    """How it failed. The driver ends the program once it has written a dump: what it was is in there."""
    told = (item.facts.get("symptom") for item in history.of("AD-RUN-027"))
    dumped = next((str(symptom) for symptom in told if symptom), None) if probe == "core_dump" else None
    return dumped or symptom_of(case, outcome)


def _place(case: Case, history: History, probe: str, outcome: Outcome) -> str | None:
    """The call that it failed in. The plain run cannot know: its launches are not waited for."""
    if probe in (BLOCKING, UNCACHED):
        place = place_of(case, outcome)
        return f"{place.name} (call {place.number})" if place is not None else None
    tool = probe.removeprefix("sanitizer_") if probe.startswith("sanitizer_") else None
    code = {"launch_trace": "AD-RUN-026", "core_dump": "AD-RUN-027"}.get(probe, "") if tool is None else "AD-RUN-028"
    told = (item.subject for item in history.of(code) if item.facts.get("tool") == tool)
    return next((subject for subject in told if subject), None)


def verdict_of(rows: Sequence[FailureRate]) -> str:
    """What the pattern says; ``undecided`` where it could as well be chance."""
    by_name = {row.probe: row for row in rows}
    plain, blocking, uncached = by_name[PLAIN], by_name.get(BLOCKING), by_name.get(UNCACHED)
    if 0 < plain.failed < plain.runs:
        return "flaky"
    if uncached is not None and blocking is not None and _moves_uncached(blocking, uncached):
        return "moves-uncached"
    if blocking is not None and blocking.failed == 0:
        sure = min(plain.runs, blocking.runs) >= ENOUGH and blocking.took_effect is not False
        return "vanishes-blocking" if sure else "undecided"
    # A library that a fault came out in says no more than that it could not do its work.
    alike = {seen for row in rows for seen in row.seen}
    alike = alike - {"gpu-library"} or alike
    return "stable" if len(alike) == 1 and all(row.failed == row.runs for row in rows) else "undecided"


def _moves_uncached(blocking: FailureRate, uncached: FailureRate) -> bool:
    """It fails at another place without the cache, or only without it; both runs have blocking launches."""
    if not uncached.failed or uncached.took_effect is False:
        return False
    known = len(blocking.places) == len(uncached.places) == 1
    return blocking.failed == 0 or (known and blocking.places != uncached.places)


def _facts(rows: Sequence[FailureRate]) -> dict[str, FactValue]:
    """Column by column."""
    facts: dict[str, FactValue] = {
        "rungs": tuple(row.probe for row in rows),
        "runs": tuple(row.runs for row in rows),
        "failed": tuple(row.failed for row in rows),
        "seen": tuple(", ".join(row.seen) for row in rows),
        "places": tuple(", ".join(row.places) for row in rows),
        "took_effect": tuple(row.took_effect for row in rows),
    }
    named = [row.places[0] for row in rows if row.probe == UNCACHED and row.places]
    return {**facts, "kernel": named[0].partition(" (call")[0]} if named else facts


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="what is the pattern: always, never when launches block, elsewhere without the caching allocator?",
    asked_when="when a call on CUDA failed and other probes were run",
    plan=plan,
    read=read,
)
