"""Do the outputs agree with the exported program?

What it does
    Runs the exported program given with --reference on the same inputs in the child and compares output by output,
    within tolerances of the dtype.

Why it matters
    It is the only judge of silent wrong numbers, and it tells whether a treatment gives the right ones.

Example:
    result: observed max |difference| 4.46, expected within rtol 1.3e-06, atol 1e-05

When it is wrong
    Reduced precision and reassociation give small differences; those within tolerance agree.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.run import JsonObject, Outcome, Request
from aotidoctor.probes.payload import run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Probe, evidence, succeeded, unasked
from aotidoctor.probes.results import objects, reference

CODE, NAME = "AD-RUN-011", "reference"


def plan(case: Case, history: History) -> Request | NotChecked:
    """Asked when a reference was given and the plain run returned."""
    if case.options.reference is None:
        return unasked(CODE, NAME, "no --reference was given")
    if case.inputs is None or not succeeded(history.outcomes.get("plain_run")):
        return unasked(CODE, NAME, "the plain run gave no outputs to compare")
    return run_request(case, NAME, "against the exported program", calls=1, reference=case.options.reference)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: agrees, differs, weights, structure, raises or unavailable."""
    if not succeeded(outcome):
        return [read_ending(CODE, case, outcome)]
    result = reference(outcome)
    if result.get("unavailable") or not result:
        why = str(result.get("unavailable") or "no comparison was made").strip().splitlines()[0][:300]
        return [
            evidence(CODE, "unavailable", Severity.WARN, outcome, observed=why, expected="a reference that can run")
        ]
    if result.get("error"):
        return [
            evidence(
                CODE,
                "raises",
                Severity.WARN,
                outcome,
                observed=f"the exported program raises: {str(result['error'])[:300]}",
                expected="outputs",
                facts={"error": str(result["error"])[:300]},
            )
        ]
    if result.get("agrees") is True:
        return [evidence(CODE, "agrees", Severity.INFO, outcome, observed="within tolerance", expected="agreement")]
    return [_difference(result, outcome)]


def _difference(result: JsonObject, outcome: Outcome) -> Evidence:
    weights = differing_weights(outcome)
    worst = max(objects(result.get("outputs")), key=_size, default={})
    structural = result.get("same_structure") is False
    kind = "weights" if weights else "structure" if structural else "differs"
    return evidence(
        CODE,
        kind,
        Severity.ERROR,
        outcome,
        subject=", ".join(weights[:4]) if weights else str(worst.get("path") or "result"),
        observed=f"max |difference| {_size(worst):.3g}" if not structural else "another structure",
        expected="the reference's outputs",
        facts={"max_abs_diff": _size(worst), "weights": tuple(weights), "output": str(worst.get("path") or "")},
    )


def differing_weights(outcome: Outcome) -> list[str]:
    """Names of constants whose values differ from the reference's state dict."""
    found = outcome.result.get("weights")
    return [str(item["name"]) for item in objects(found) if item.get("equal") is False and "name" in item]


def _size(item: JsonObject) -> float:
    value = item.get("max_abs_diff")
    if isinstance(value, str):
        return float("inf")
    return float(value) if isinstance(value, int | float) else 0.0


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="do the outputs agree with the exported program?",
    asked_when="when --reference was given and the plain run returned",
    plan=plan,
    read=read,
)
