"""Does the model write to its inputs, or hand them out again?

What it does
    Compares the input tensors before and after the calls of the plain run, and looks whether outputs share memory with
    inputs or with each other.

Why it matters
    A caller that reuses its buffers gets other inputs in the next call; an output that is a view changes when the input
    does.

Example:
    args[0]: observed changed by the call, expected unchanged

When it is wrong
    The eager model may do the same, and the caller may want it: a warning.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.run import Outcome
from aotidoctor.probes.probe import History, Probe, Reuse, evidence, succeeded, unasked
from aotidoctor.probes.results import Value, inputs, outputs

CODE, NAME = "AD-RUN-004", "mutation"


def plan(case: Case, history: History) -> Reuse | NotChecked:
    """Answered by the plain run."""
    if case.inputs is None or not succeeded(history.outcomes.get("plain_run")):
        return unasked(CODE, NAME, "the plain run gave no outputs")
    return Reuse(probe="plain_run")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding per changed input and one per aliasing output."""
    given = inputs(outcome)
    changed = [value for value in given if value.changed]
    found = [_changed(value, history, outcome) for value in changed]
    return [*found, *(_alias(value, given, outcome) for value in outputs(outcome, 0) if _shares(value))]


def _shares(value: Value) -> bool:
    return bool(value.aliases_inputs or value.aliases_outputs)


def _changed(value: Value, history: History, outcome: Outcome) -> Evidence:
    aliased = any(item.code == "AD-IN-018" and value.path in (item.subject or "") for item in history.findings)
    return evidence(
        CODE,
        "input-changed",
        Severity.ERROR if aliased else Severity.WARN,
        outcome,
        subject=value.path,
        observed="changed by the call" + (", and it shares memory with another input" if aliased else ""),
        expected="unchanged",
        facts={"path": value.path, "aliased": aliased},
    )


def _alias(value: Value, given: list[Value], outcome: Outcome) -> Evidence:
    partners = [given[index].path for index in value.aliases_inputs if index < len(given)]
    others = [f"result[{index}]" for index in value.aliases_outputs]
    return evidence(
        CODE,
        "output-alias",
        Severity.WARN,
        outcome,
        subject=value.path,
        observed=f"shares memory with {', '.join(partners + others)}",
        expected="memory of its own",
        facts={"partners": tuple(partners + others)},
    )


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="does the model write to its inputs or hand them out again?",
    asked_when="when the plain run returned (no further run)",
    plan=plan,
    read=read,
)
