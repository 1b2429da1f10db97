"""Does memory grow with each call?

What it does
    Calls the loaded package 40 times in one process and reads the resident size after each call.

Why it matters
    If a custom operator keeps its buffers, the OOM killer ends the server hours later, in an innocent call.

Example:
    resident size: observed +4.0 MiB per call over 30 calls, expected steady

When it is wrong
    Caches fill in the first calls; only growth that continues through the second half counts, not a few large steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import called, run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-008", "growth"
FIND = RunFinder(CODE, NAME, __doc__)
CALLS = 40
# Less than four pages per call is noise of allocators, and of the system on a busy machine.
LEAST_BYTES_PER_CALL = 4 * 4096
# Seconds of a call above which the probe is too expensive.
SLOWEST_CALL_S = 0.25


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if custom operators run, or with --probes growth."""
    plain = history.plain
    if plain is None or not succeeded(plain) or case.inputs is None:
        return FIND.unchecked("the plain run returned no outputs")
    if history.errors("AD-IN"):
        return FIND.unchecked("a static finding already explains a failure")
    requested = case.options.asks_for(NAME)
    if not requested and (case.contract is None or not case.contract.custom_ops):
        return FIND.unchecked("no custom operator runs; run this with --probes growth")
    if not requested and plain.stages.get("run2", 0.0) > SLOWEST_CALL_S:
        return FIND.unchecked(f"a call takes {plain.stages['run2']:.1f} s; run this with --probes growth")
    return run_request(case, NAME, f"{CALLS} calls in one process", calls=CALLS, observe=("rss",))


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: grows or steady (or the ending, if a later call failed)."""
    if not succeeded(outcome):
        return [read_ending(CODE, case, outcome)]
    sizes = called(outcome).rss
    rate = growth_rate(sizes)
    if rate < LEAST_BYTES_PER_CALL:
        return [FIND.info(outcome)("steady", None, observed="steady", expected="steady")]
    ops = case.contract.custom_ops if case.contract is not None else ()
    return [
        FIND.error(outcome)(
            "grows",
            ops[0] if len(ops) == 1 else None,
            observed=f"+{rate / 1024:.1f} KiB per call over {len(sizes)} calls",
            expected="a steady resident size",
            facts={"bytes_per_call": int(rate), "has_custom_ops": bool(ops)},
        )
    ]


def growth_rate(sizes: Sequence[int]) -> float:
    """Bytes per call over the second half; 0 unless both of its quarters grow, even without the largest steps.

    An allocator takes large amounts rarely; an operator that leaks grows in each of its calls.
    """
    half = sizes[len(sizes) // 2 :]
    if len(half) < 8:
        return 0.0
    middle = len(half) // 2
    first, second = half[middle] - half[0], half[-1] - half[middle]
    steps = sorted(after - before for before, after in pairwise(half))
    usual = steps[: len(steps) * 3 // 4]
    if first <= 0 or second <= 0 or sum(usual) < LEAST_BYTES_PER_CALL * len(usual):
        return 0.0
    return (half[-1] - half[0]) / (len(half) - 1)


PROBE = FIND.probe(plan, read, "when custom operators run and the calls are quick, or with --probes growth")
