"""Do the outputs depend on uninitialized memory?

What it does
    Calls the loaded package in a separate process, with the allocator filling every fresh block with a byte pattern
    (glibc M_PERTURB), and compares the outputs with those of the plain run.

Why it matters
    A kernel that reads torch.empty(), or past the end of a buffer, computes with whatever the heap contains: right
    today, wrong in the server.

Example:
    result: observed different values with filled memory, expected the same bits

When it is wrong
    If the C library has no such switch (musl, macOS), the setting has no effect, and the report states this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import call_outputs, device_of, run_request, same_outputs
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Reuse, RunFinder, succeeded
from aotidoctor.probes.repeat import FILL, calls_to_compare, is_filled, read_repeated

CODE, NAME = "AD-RUN-009", "memory_fill"
FIND = RunFinder(CODE, NAME, __doc__)


def plan(case: Case, history: History) -> Request | Reuse | NotChecked:
    """Plan a run or reuse ``again``, if the plain run returned on the CPU and no static finding explains it."""
    plain = history.plain
    if plain is None or not succeeded(plain) or case.inputs is None:
        return FIND.unchecked("there are no outputs to compare")
    if device_of(case) != "cpu":
        return FIND.unchecked("device memory does not come from malloc")
    if history.errors("AD-IN"):
        return FIND.unchecked("a static finding already explains wrong numbers")
    calls, before = calls_to_compare(case, plain), history.outcomes.get("again")
    if is_filled(before):
        same = history.has("AD-RUN-002")
        return Reuse(probe="again") if same else run_request(case, NAME, "the same, without the filling", calls=calls)
    return run_request(case, NAME, "fresh memory filled with a pattern", perturb=FILL, calls=calls)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: depends or independent; before it that of ``again``, if its run left both questions open."""
    before = history.outcomes.get("again")
    if before is None or not is_filled(before) or before is outcome:
        return _judge(case, history, outcome)
    repeated = read_repeated(case, history.outcomes["plain_run"], outcome)
    return [*repeated, *_judge(case, replace(history, findings=(*history.findings, *repeated)), before)]


def _judge(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    if not succeeded(outcome):
        return [read_ending(CODE, case, outcome)]
    same = same_outputs(call_outputs(history.outcomes["plain_run"], 0), call_outputs(outcome, 0))
    ops = case.needs.uninitialized_ops
    random_between = any(item.facts.get("between_processes") is True for item in history.of("AD-RUN-002"))
    if random_between and ops:
        # No pattern is needed: fresh processes contain different garbage, and the code is known to read it.
        return [_depends("different values in identical processes", ops, outcome)]
    if same or random_between:
        kind, severity, observed = "independent", Severity.INFO, "bit-identical outputs"
        if random_between:
            kind, observed = "undecided", "outputs already differ between identical processes"
        return [FIND.at(severity, outcome)(kind, None, observed=observed, expected="the same bits")]
    return [_depends(f"different values when fresh memory holds 0x{FILL:02x}", ops, outcome)]


def _depends(observed: str, ops: tuple[str, ...], outcome: Outcome) -> Evidence:
    return FIND.error(outcome)(
        "depends",
        ", ".join(ops) or None,
        observed=observed,
        expected="the same bits",
        facts={"fill": FILL, "uninitialized_ops": ops},
    )


PROBE = FIND.probe(plan, read, "when it returned and no static finding explains wrong numbers")
