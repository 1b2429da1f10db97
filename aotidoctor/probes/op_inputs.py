"""With which arguments does the package call its custom operators?

What it does
    Runs the package once more and saves the arguments of each custom operator's first call, just before it begins; the
    run ends with the last of them. If calls cannot be hooked, the exported program from --reference is interpreted.

Why it matters
    An operator can be judged only on its real arguments: with the saved arguments it can be called alone.

Example:
    zoo::misbehave: observed arguments of 2 of 2 operators, expected all

When it is wrong
    Operators after the point where the package crashes are never reached, so nothing is known about them. Arguments
    above 512 MiB are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.answers import SavedCalls, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.run import Outcome, Request, TimedOut
from aotidoctor.probes.custom_ops import custom_nodes
from aotidoctor.probes.payload import device_of, run_request
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-020", "op_inputs"
FIND = RunFinder(CODE, NAME, __doc__)
# Seconds of a call: without a sign of trouble the probe has to be cheap.
SLOWEST_S = 5.0
# Seconds beyond the point that a hanging plain run reached.
PATIENCE_S = 5.0
LATE = ("run", "scan", "unload", "reference", "done")


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if the package calls custom operators and the plain run reached the call."""
    nodes = custom_nodes(case)
    plain = history.plain
    reason = _reason(case, history, plain) if nodes else "the package calls no custom operator"
    if reason is not None or plain is None:
        return FIND.unchecked(reason or "there was no plain run")
    targets = tuple(dict.fromkeys(node.target for node in nodes))
    purpose = "the arguments of the custom operators"
    request = run_request(case, NAME, purpose, targets=targets, reference=case.options.reference)
    return replace(request, job="op_inputs", timeout=timeout_of(case, plain))


def _reason(case: Case, history: History, plain: Outcome | None) -> str | None:
    """Why the probe does not run, or None."""
    if plain is None:
        return "there was no plain run"
    if case.inputs is None or not plain.stage.startswith(LATE):
        return "the model was not called"
    if history.static_errors():
        return "a static finding already explains the behaviour"
    if history.errors("AD-RUN-010"):
        return "the operators registered here are not those of the package"
    if case.options.asks_for(NAME) or has_trouble(history):
        return None
    if device_of(case) != "cpu":
        return "nothing is wrong, and a fresh process per operator is slow; run it with --probes op_inputs,op_alone"
    if plain.stages.get("run1", 0.0) > SLOWEST_S:
        took = plain.stages["run1"]
        return f"nothing is wrong, and a call takes {took:.1f} s; run it with --probes op_inputs,op_alone"
    return None


def has_trouble(history: History) -> bool:
    """Whether any run gave a sign that something is wrong."""
    return bool(history.errors("AD-RUN-0")) or history.has("AD-RUN-004", "input-changed", "output-alias")


def timeout_of(case: Case, plain: Outcome) -> float:
    """The user's limit, or less for a package that hangs."""
    if not isinstance(plain.ending, TimedOut):
        return case.options.timeout
    reached = sum(seconds for stage, seconds in plain.stages.items() if not stage.startswith("run"))
    return min(case.options.timeout, reached + PATIENCE_S)


def saved_calls(history: History) -> SavedCalls:
    """The calls that were seen, in call order."""
    outcome = history.outcomes.get(NAME)
    return SavedCalls() if outcome is None else parse_answer(SavedCalls, outcome.result)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding, never more than a note: captured, unreached or unavailable."""
    calls = parse_answer(SavedCalls, outcome.result)
    seen = {call.target for call in calls.captured}
    wanted = {node.target for node in custom_nodes(case)}
    observed, kind = f"arguments of {len(seen)} of {len(wanted)} operators", "captured"
    if not seen and calls.skipped:
        kind, observed = "unavailable", calls.skipped[0].reason
    elif not seen and calls.by == "hooks" and not succeeded(outcome):
        # A run that died after the hooks were set never reached an operator.
        kind, observed = "unreached", "the run ended before it reached a custom operator"
    elif not seen:
        kind, observed = "unavailable", calls.unavailable or f"the run ended in {outcome.stage}"
    return [
        FIND.info(outcome)(
            kind,
            ", ".join(sorted(wanted)),
            observed=observed,
            expected="the arguments of all operators",
            facts={"captured": tuple(sorted(seen)), "by": calls.by},
        )
    ]


PROBE = FIND.probe(plan, read, "when the package calls custom operators and its call is quick, or something is wrong")
