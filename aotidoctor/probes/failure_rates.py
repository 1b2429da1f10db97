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
from aotidoctor.model.evidence import Evidence, FactValue, Severity
from aotidoctor.model.record import record
from aotidoctor.model.run import NotStarted, Outcome
from aotidoctor.probes.cuda_probe import place_of, reason_to_skip, symptom_of
from aotidoctor.probes.probe import History, Plan, Reuse, RunFinder, succeeded

CODE, NAME = "AD-RUN-029", "rung_table"
FIND = RunFinder(CODE, NAME, __doc__)
PLAIN, BLOCKING, UNCACHED = "plain_run", "cuda_blocking", "cuda_no_caching"
# The probes in the order in which they run; names of variants and tools begin with these.
ORDER = (PLAIN, "check_inputs", BLOCKING, UNCACHED, "launch_trace", "core_dump", "sanitizer", "cuda_variants")
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
    """Plan the repetitions that decide, then the table of all runs."""
    reason = reason_to_skip(case, history)
    if reason is not None:
        return FIND.unchecked(reason)
    if not any(name in history.outcomes for name in (BLOCKING, UNCACHED, "launch_trace")):
        return FIND.unchecked("no other probe was run to compare with")
    table, blocking = Reuse(probe=PLAIN), history.outcomes.get(BLOCKING)
    if blocking is None or not succeeded(blocking) or blocking.took_effect is False:
        return (table,)
    purpose = "repeated: is the outcome the same?"
    repetitions = [
        replace(history.outcomes[probe].request, probe=f"{probe}#{number}", purpose=purpose)
        for number in range(2, REPEATS + 2)
        for probe in (PLAIN, BLOCKING)
    ]
    return (*repetitions, table)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding of all runs: vanishes-blocking, moves-uncached, flaky, stable or undecided; none of a repetition."""
    if outcome.request.probe != PLAIN:
        return []
    rows = rows_of(case, history)
    kind = verdict_of(rows)
    facts: dict[str, FactValue] = {
        "rungs": tuple(row.probe for row in rows),
        "runs": tuple(row.runs for row in rows),
        "failed": tuple(row.failed for row in rows),
        "seen": tuple(", ".join(row.seen) for row in rows),
        "places": tuple(", ".join(row.places) for row in rows),
        "took_effect": tuple(row.took_effect for row in rows),
    }
    named = [row.places[0].partition(" (call")[0] for row in rows if row.probe == UNCACHED and row.places]
    if named:
        facts["kernel"] = named[0]
    # Without the cache it fails at the fault itself, not at a later place that the damage reaches.
    kernel = named[0] if named and kind == "moves-uncached" else None
    return [
        FIND.at(_SEVERITY.get(kind, Severity.INFO), outcome)(
            kind,
            kernel,
            observed=f"{_WORDS[kind]}: {', '.join(f'{row.probe} {row.failed} of {row.runs}' for row in rows)}",
            expected="the same outcome in all runs",
            facts=facts,
        )
    ]


# The first two explain the failure, the third only describes it.
_SEVERITY = {"vanishes-blocking": Severity.ERROR, "moves-uncached": Severity.ERROR, "flaky": Severity.WARN}
_WORDS = {
    "vanishes-blocking": "gone with blocking launches, a race or a missing ordering",
    "moves-uncached": "at a different call without the caching allocator: beyond the end of a buffer",
    "flaky": "intermittent, with nothing changed",
    "stable": "the same in every probe",
    "undecided": "inconclusive",
}


def rows_of(case: Case, history: History) -> tuple[FailureRate, ...]:
    """The rows of the table, in the order of the probes."""
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
    # The driver ends the program once it has written a dump, which has the symptom.
    symptoms = (item.facts.get("symptom") for item in history.of("AD-RUN-027"))
    dumped = next((str(symptom) for symptom in symptoms if symptom), None) if probe == "core_dump" else None
    return FailureRate(
        probe=probe,
        runs=len(outcomes),
        failed=len(failed),
        seen=tuple(dict.fromkeys(dumped or symptom_of(case, outcome) for outcome in failed)),
        places=tuple(dict.fromkeys(places)),
        took_effect=False if False in effects else None if None in effects else True,
    )


def _place(case: Case, history: History, probe: str, outcome: Outcome) -> str | None:
    """The call that it failed in; unknown for the plain run, whose launches are not waited for."""
    if probe in (BLOCKING, UNCACHED):
        place = place_of(case, outcome)
        return f"{place.name} (call {place.number})" if place is not None else None
    tool = probe.removeprefix("sanitizer_") if probe.startswith("sanitizer_") else None
    code = {"launch_trace": "AD-RUN-026", "core_dump": "AD-RUN-027"}.get(probe, "") if tool is None else "AD-RUN-028"
    subjects = (item.subject for item in history.of(code) if item.facts.get("tool") == tool)
    return next((subject for subject in subjects if subject), None)


def verdict_of(rows: Sequence[FailureRate]) -> str:
    """The kind that the pattern shows; ``undecided`` if it may be chance."""
    by_name = {row.probe: row for row in rows}
    plain, blocking, uncached = by_name[PLAIN], by_name.get(BLOCKING), by_name.get(UNCACHED)
    if 0 < plain.failed < plain.runs:
        return "flaky"
    # At another place without the cache, or only without it; both runs have blocking launches.
    if uncached is not None and blocking is not None and uncached.failed and uncached.took_effect is not False:
        known = len(blocking.places) == len(uncached.places) == 1
        if blocking.failed == 0 or (known and blocking.places != uncached.places):
            return "moves-uncached"
    if blocking is not None and blocking.failed == 0:
        sure = min(plain.runs, blocking.runs) >= ENOUGH and blocking.took_effect is not False
        return "vanishes-blocking" if sure else "undecided"
    # A library reports no more than that it could not do its work.
    alike = {seen for row in rows for seen in row.seen}
    alike = alike - {"gpu-library"} or alike
    return "stable" if len(alike) == 1 and all(row.failed == row.runs for row in rows) else "undecided"


PROBE = FIND.probe(plan, read, "when a call on CUDA failed and other probes were run")
