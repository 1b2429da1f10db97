"""Does the failure depend on the number of threads?

What it does
    Repeats a crash, a hang or a flaky run with one thread. Where outputs differ between equal calls, or from the
    reference, calls the model with its threads and with one in the same process, three times each, and compares.

Why it matters
    Per-thread accumulators of reductions are sized for the machine that compiled the package: with more threads they
    are written past their end. Races also disappear with one thread.

Example:
    1 thread: observed outputs, expected SIGSEGV as with 8 threads

When it is wrong
    On a busy machine a time limit may be exceeded without a race: several threads must exceed it twice, each time with
    three times what one thread needed. One thread also changes the memory layout: a heap fault elsewhere may not show.
    Sums in a different order differ by rounding, which is not a fault.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.answers import Acted, SideBySide, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request, TimedOut
from aotidoctor.probes.payload import device_of, run_of, run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-006", "threads"
FIND = RunFinder(CODE, NAME, __doc__)
# A time limit counts as a hang if several threads exceed this multiple of the seconds of one thread, twice.
LONGER = 3


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if one died or hung, or outputs changed or are wrong, and nothing static explains it; or by name."""
    failed = history.has("AD-RUN-001", "signalled", "timed-out") or history.has("AD-RUN-002", "flaky")
    odd = any(item.kind == "differs" for item in history.errors("AD-RUN-002", "AD-RUN-011"))
    requested = case.options.localize or case.options.asks_for(NAME)
    if not failed and not odd and not (requested and succeeded(history.plain)):
        return FIND.unchecked("nothing crashed, hung or was intermittent; run this with --probes threads")
    if history.static_errors():
        return FIND.unchecked("a static finding already explains it; its treatment is tried instead")
    if case.options.threads == 1:
        return FIND.unchecked("it already ran with one thread")
    if failed:
        return run_request(case, NAME, "with one thread", threads=1)
    plain = history.plain
    if plain is not None and parse_answer(Acted, plain.result).threads == 1:
        return FIND.unchecked("it already ran with one thread")
    if device_of(case) != "cpu":
        return FIND.unchecked("CPU threads do not compute on a different device")
    if plain is None or case.inputs is None:
        return FIND.unchecked("there was no call to repeat")
    if case.needs.random_ops or case.needs.uninitialized_ops:
        return FIND.unchecked("the package itself explains why outputs differ")
    return run_request(case, NAME, "several threads against one", against_threads=1, observe=())


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: heals, same or slow; for outputs that change also rounding or differs."""
    if run_of(outcome).against_threads is not None:
        return _read_changing(case, outcome)
    if not succeeded(outcome):
        observed = f"{read_ending(CODE, case, outcome).observed} with one thread"
        return [FIND.info(outcome)("same", None, observed=observed, expected="no failure")]
    # No hang but a busy machine, unless both runs with several threads had far longer than one thread needed.
    runs = [history.outcomes.get(name) for name in ("plain_run", "again")]
    limits = [run.ending.limit for run in runs if run is not None and isinstance(run.ending, TimedOut)]
    if limits and (len(limits) < len(runs) or min(limits) < LONGER * outcome.seconds):
        return [
            FIND.info(outcome)(
                "slow",
                None,
                observed=f"outputs with one thread, after {outcome.seconds:.1f} s",
                expected="the same ending as with several",
                message="a time limit that several threads exceeded once, or only just, is not evidence of a race",
                facts={"threads": 1},
            )
        ]
    return [
        FIND.error(outcome)(
            "heals",
            None,
            observed="outputs with one thread",
            expected="the same ending as with several",
            facts={"threads": 1},
        )
    ]


def _read_changing(case: Case, outcome: Outcome) -> Sequence[Evidence]:
    if not succeeded(outcome):
        return [read_ending(CODE, case, outcome)]
    found = parse_answer(SideBySide, outcome.result).against_threads
    if found is None:
        return []
    far = max((item.max_abs_diff or 0.0 for item in found.outputs), default=0.0)
    # Only calls that can be repeated with both counts can be compared with each other.
    match found.repeatable:
        case (False, True):
            kind, observed = "heals", "equal outputs with one thread, changing ones with several"
        case (True, True) if found.same:
            kind, observed = "same", "the same outputs with one thread"
        case (True, True) if found.agrees:
            kind = "rounding"
            observed = f"max |difference| {far:.3g} with one thread: a different order of summation"
        case (True, True):
            kind, observed = "differs", f"max |difference| {far:.3g} between one thread and several"
        case _:
            kind, observed = "same", "changing outputs with one thread as well"
    facts: dict[str, FactValue] = {"threads": 1, "max_abs_diff": far}
    severity = Severity.ERROR if kind in ("heals", "differs") else Severity.INFO
    expected = "equal outputs in equal calls"
    return [FIND.at(severity, outcome)(kind, None, observed=observed, expected=expected, facts=facts)]


PROBE = FIND.probe(
    plan, read, "when it crashed, hung, was flaky or gave changing or wrong outputs, and nothing static explains it"
)
