"""What does each custom operator do when it is called alone, with the arguments that the package gives it?

What it does
    Calls the operator in a child without the package, on the saved arguments: twice, and in a loop if memory grew or
    the heap was damaged. It compares the result with what the compiled code relies on and with the operator's fake
    kernel, looks for writes and aliases that the schema does not declare, and runs torch.library.opcheck if something
    is wrong.

Why it matters
    An operator that fails alone is the cause, whichever kernel the crash was in; one that does all it promises is not.
    A wrong dtype cannot be detected in any other way: nothing in a package checks it.

Example:
    zoo::misbehave: observed dtype float64, expected float32 as compiled

When it is wrong
    Damage to the heap may remain undetected in some calls, and an operator can depend on what ran before it. Random
    results are a fault only if the model's outputs change with them.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.answers import OperatorAlone, SavedCall, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.jobs import OneOperator
from aotidoctor.model.run import Outcome, Request, TimedOut
from aotidoctor.probes import op_findings
from aotidoctor.probes.op_findings import UNKNOWN, promises_of
from aotidoctor.probes.op_inputs import has_trouble, saved_calls, timeout_of
from aotidoctor.probes.payload import device_of, user_code
from aotidoctor.probes.probe import History, RunFinder, succeeded, unasked

CODE, NAME = "AD-RUN-015", "op_alone"
FIND = RunFinder(CODE, NAME, __doc__)
MOST_OPERATORS = 8
MOST_CALLS = 4
LOOP = 24


def plan(case: Case, history: History) -> NotChecked | tuple[Request | NotChecked, ...]:
    """Plan one run per operator whose arguments were saved."""
    plain, targets = history.plain, targets_of(history)
    if plain is None or not targets:
        return FIND.unchecked("no arguments of a custom operator were saved")
    left_out = [
        unasked(CODE, f"{NAME}:{target}", f"more than {MOST_OPERATORS} operators", moot=False)
        for target in targets[MOST_OPERATORS:]
    ]
    unsaved = [
        unasked(CODE, f"{NAME}:{call.target}", call.reason, moot=False)
        for call in saved_calls(history).skipped
        if call.target not in targets
    ]
    requests = [_request(case, history, target, plain) for target in targets[:MOST_OPERATORS]]
    return (*requests, *left_out, *unsaved)


def targets_of(history: History) -> list[str]:
    """Operators in the order of their runs: if the plain run died, the one that it reached last comes first."""
    targets = list(dict.fromkeys(call.target for call in _calls(history)))
    # Every operator before the one that was reached last has returned: it does not hang.
    return targets[:1] if history.plain is not None and isinstance(history.plain.ending, TimedOut) else targets


def _calls(history: History) -> tuple[SavedCall, ...]:
    calls = saved_calls(history).captured
    return calls if succeeded(history.plain) else calls[::-1]


def _request(case: Case, history: History, target: str, plain: Outcome) -> Request:
    calls = [call for call in _calls(history) if call.target == target]
    known = all(promise.complete for call in calls for promise in promises_of(case, history, call) or [UNKNOWN])
    payload = OneOperator(
        target=target,
        files=tuple(call.file for call in calls[:MOST_CALLS]),
        code=user_code(case),
        device=device_of(case),
        threads=case.options.threads,
        loop=LOOP if op_findings.late_damage(history) else 0,
        fake=has_trouble(history) or not known,
        opcheck=op_findings.contract_in_doubt(history),
    )
    return Request(
        probe=f"{NAME}:{target}",
        job=NAME,
        payload=payload,
        fresh=device_of(case) != "cpu",
        timeout=timeout_of(case, plain),
        memory_limit=case.options.memory_limit,
        purpose=f"{target} alone, on the arguments it was given",
    )


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """Faults of the operator, or ``ok``; ``cleared`` once all of them are ``ok``."""
    if op_findings.died_in_operator(outcome):
        return op_findings.read_operator_ending(CODE, case, history, outcome)
    if not parse_answer(OperatorAlone, outcome.result).returned:
        return [_note("unavailable", f"the run ended in {outcome.stage}, before the operator was called", outcome)]
    found = op_findings.read_operator_result(CODE, case, history, outcome)
    found = found or [_note("ok", "returns what the package expects", outcome)]
    return [*found, *_cleared(history, outcome, found)]


def _note(kind: str, observed: str, outcome: Outcome) -> Evidence:
    target = op_findings.operator_job(outcome).target
    expected = "what the package expects"
    return FIND.info(outcome)(kind, target, observed=observed, expected=expected)


def _cleared(history: History, outcome: Outcome, found: Sequence[Evidence]) -> list[Evidence]:
    """The finding after the last operator: none did anything wrong, and the package died in none of them."""
    targets = targets_of(history)
    called = [name for name in history.outcomes if name.startswith(f"{NAME}:")]
    known = [*found, *history.of(CODE)]
    if (
        len(targets) > MOST_OPERATORS
        or saved_calls(history).skipped
        or {f"{NAME}:{target}" for target in targets} != set(called)
    ):
        return []
    wrong = any(item.severity is not Severity.INFO or item.kind == "unavailable" for item in known)
    if wrong or op_findings.is_doubtful(history):
        return []
    looped = op_findings.operator_job(outcome).loop > 0
    return [
        FIND.info(outcome)(
            "cleared",
            ", ".join(targets),
            observed="called alone, no operator does anything wrong",
            expected="operators that match their schema and fake kernel",
            facts={"ops": tuple(targets), "looped": looped},
        )
    ]


PROBE = FIND.probe(plan, read, "when arguments of custom operators were saved")
