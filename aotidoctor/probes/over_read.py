"""Does the code read beyond its inputs?

What it does
    If the package does not record the properties of its inputs (before torch 2.7, and for a bare library), calls it
    with each input in memory that continues before its start and after its end, and changes the bytes there. Outputs
    that change were computed from elements that the input does not have. The probe searches for the furthest such
    element, and shortens dims of other inputs with as many rows, to see whether less is then read.

Why it matters
    Without checks a tensor with too few rows is read past its end: garbage that changes from call to call, or a crash
    in a process that has been running for days.

Example:
    args[1]: observed 4 rows, expected 5, as many as args[0].shape[0]

When it is wrong
    Elements that are read but do not change the outputs are not detected. An index beyond its table also reads there.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked
from aotidoctor.model.record import JsonObject, objects
from aotidoctor.model.run import Outcome, Request, Signalled
from aotidoctor.probes.payload import device_of, run_request
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-036", "read_beyond"
FIND = RunFinder(CODE, NAME, __doc__)
# Seconds of one call: this probe makes dozens.
SLOWEST = 1.0


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if the package does not record the properties of its inputs and nothing explains a failure."""
    plain = history.plain
    if (
        plain is None
        or case.inputs is None
        or not (succeeded(plain) or (isinstance(plain.ending, Signalled) and plain.stage.startswith("run")))
    ):
        return FIND.unchecked("the plain run did not return, and was not killed by a signal")
    if device_of(case) != "cpu":
        return FIND.unchecked("the inputs are not in the memory of the host")
    if history.errors("AD-IN", "AD-LOAD", "AD-RUN-022"):
        return FIND.unchecked("a finding already explains wrong numbers")
    requested = case.options.asks_for(NAME)
    if not requested and case.contract is not None and not case.contract.leaves_open():
        return FIND.unchecked("the package records the properties of its inputs; run this with --probes read_beyond")
    if not requested and plain.stages.get("run1", 0.0) > SLOWEST:
        return FIND.unchecked("a call takes too long to repeat it; run this with --probes read_beyond", moot=False)
    return run_request(case, NAME, "inputs in memory that continues past their end", read_beyond=True, observe=())


def read(_case: Case, _history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One per input that is read beyond (``follows``, ``beyond``, ``before``); else ``within`` or ``undecided``."""
    answer = outcome.result.get("read_beyond")
    if not succeeded(outcome) or not isinstance(answer, dict) or answer.get("decided") is not True:
        why = "equal calls already differ" if isinstance(answer, dict) else f"the call ended in {outcome.stage}"
        return [FIND.info(outcome)("undecided", None, observed=why, expected="equal outputs")]
    leaves = objects(answer.get("leaves"))
    if not leaves:
        looked = answer.get("looked")
        observed = f"no effect of the memory around {len(looked) if isinstance(looked, list) else 0} input(s)"
        return [FIND.info(outcome)("within", None, observed=observed, expected="no effect")]
    return [_finding(leaf, outcome) for leaf in leaves]


def _finding(leaf: JsonObject, outcome: Outcome) -> Evidence:
    path, elements, needed, rows = (leaf.get(name) for name in ("path", "elements", "needed", "rows"))
    if not (isinstance(path, str) and isinstance(elements, int) and isinstance(needed, int)):
        raise TypeError(f"unexpected answer of the worker: {leaf}")
    follows = leaf.get("follows")
    partner = follows[0] if isinstance(follows, list) and follows else None
    facts: dict[str, FactValue] = {"path": path, "elements": elements, "expected_elements": needed}
    if not isinstance(partner, list) or not isinstance(rows, int):
        kind = "before" if leaf.get("before") else "beyond"
        wanted = "no element before the first one" if kind == "before" else f"at least {needed}, which are read"
        return FIND.error(outcome)(kind, path, observed=f"{elements} elements", expected=wanted, facts=facts)
    size, other, at = rows * elements // needed, str(partner[0]), partner[1]
    return FIND.error(outcome)(
        "follows",
        f"{path}.shape[0]",
        observed=str(size),
        expected=f"{rows}, as {other}.shape[{at}]: with one less there, one row fewer is read",
        facts={**facts, "dim": 0, "size": size, "expected_size": rows, "partner": other, "symbol": None},
    )


PROBE = FIND.probe(
    plan, read, "when the package does not record the properties of its inputs, and no finding explains a failure"
)
