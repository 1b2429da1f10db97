"""Does it depend on the number of threads?

What it does
    Repeats a crash, a hang or a flaky run with one thread.

Why it matters
    Per-thread accumulators of reductions are sized for the machine that compiled the package: with more threads they
    are written past their end. Races heal with one thread, too.

Example:
    1 thread: observed outputs, expected SIGSEGV as with 8 threads

When it is wrong
    One thread also changes the memory layout: a heap fault elsewhere may hide.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Probe, evidence, succeeded, unasked

CODE, NAME = "AD-RUN-006", "threads"


def plan(case: Case, history: History) -> Request | NotChecked:
    """Asked when a run died or hung and nothing static explains it."""
    if not history.has("AD-RUN-001", "signalled", "timed-out") and not history.has("AD-RUN-002", "flaky"):
        return unasked(CODE, NAME, "nothing crashed, hung or came and went")
    if history.errors("AD-IN", "AD-HOST", "AD-ART", "AD-LOAD"):
        return unasked(CODE, NAME, "a static finding already explains it; its treatment is tried instead")
    if case.options.threads == 1:
        return unasked(CODE, NAME, "it already ran with one thread")
    return run_request(case, NAME, "with one thread", threads=1)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: heals or same."""
    if succeeded(outcome):
        return [
            evidence(
                CODE,
                "heals",
                Severity.ERROR,
                outcome,
                observed="outputs with one thread",
                expected="the same ending as with several",
                facts={"threads": 1},
            )
        ]
    ending = read_ending(CODE, case, outcome)
    return [
        evidence(
            CODE, "same", Severity.INFO, outcome, observed=f"{ending.observed} with one thread", expected="no failure"
        )
    ]


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="does one thread heal it?",
    asked_when="when it crashed, hung or was flaky and nothing static explains it",
    plan=plan,
    read=read,
)
