"""Does the package do what the exported program does?

What it does
    Runs the reference given with --reference (an exported program, or module.py:function) on the same inputs in the
    child and compares output by output: structure, dtype, shape, positions of NaN and Inf, values. It also compares the
    weights, what the two write to their inputs, and what their outputs share memory with. Outputs that differ by more
    than a few roundings are compared with a float64 run of the exported program, which shows which of the two is wrong.

Why it matters
    It is the only way to judge silently wrong numbers. The float64 run distinguishes a wrong package from the limits of
    the dtype; a weight that differs is named before any code is blamed.

Example:
    result: observed max |difference| 0.00047; off by 3.9e+03 eps from float64, the reference by 0.8 (rounding in
    float32 explains 32), expected the reference's outputs

When it is wrong
    Without a float64 run (random numbers, a function that refuses float64, custom operators that round internally) a
    difference is not judged. A fault smaller than what the dtype's rounding explains cannot be seen in the outputs.
    Constants that were folded cannot be compared. Constants that were written into the code (up to 8 elements) are
    compared if the outputs differ and nothing else does: their values, read from the sources of the package, must
    explain the difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.localize.comparison import read_comparison, read_weights
from aotidoctor.model.case import Case, Tolerance
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, RunSource, Severity
from aotidoctor.model.record import JsonObject, JsonValue, objects
from aotidoctor.model.run import Outcome, Request, TimedOut
from aotidoctor.probes.payload import reference_comparison, run_request, stored_rows
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Probe, Reuse, evidence, succeeded, unasked
from aotidoctor.probes.reference_findings import CODE, of_another_program, output_finding, weights_finding
from aotidoctor.probes.symptoms import recognise

NAME, EMULATION = "reference", "emulation"
# The worker is there once the outputs were compared and only the float64 run is missing.
FLOAT64 = "float64"
RANGE = "AD-IN-017"


def plan(case: Case, history: History) -> Request | Reuse | NotChecked:
    """Asked when a reference was given and the plain run returned, or the emulation did where there was none."""
    if case.options.reference is None:
        return unasked(CODE, NAME, "no --reference was given", moot=False)
    if "plain_run" not in history.outcomes and "reference" in _emulated_result(history):
        return Reuse(probe=EMULATION)
    if case.inputs is None or not succeeded(history.plain):
        return unasked(CODE, NAME, "the plain run returned no outputs to compare")
    return run_request(case, NAME, "against the exported program", calls=1, **comparison(case))


def comparison(case: Case) -> dict[str, object]:
    """What the worker needs to compare with the reference of the options."""
    return {
        "reference": case.options.reference,
        "stored": stored_rows(case),
        "measure": case.options.measure,
        "rtol": _spell_tolerances(case.options.tolerances.rtol),
        "atol": _spell_tolerances(case.options.tolerances.atol),
    }


def _emulated_result(history: History) -> JsonObject:
    """The result of a package that could not be run here and was emulated."""
    outcome = history.outcomes.get(EMULATION)
    return outcome.result if outcome is not None else {}


def _spell_tolerances(given: Sequence[Tolerance]) -> tuple[tuple[str | None, float], ...]:
    return tuple((one.output, one.value) for one in given)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """Of the outputs: agrees, precision, differs, nan, dtype or structure; else raises or unavailable.

    Also weights (instead of the outputs that they explain), mutation and alias, where there is something to say.
    """
    result = reference_comparison(outcome)
    if not succeeded(outcome) and not (outcome.stage == FLOAT64 and result):
        return [_unfinished_reason(case, outcome)]
    if result.get("unavailable") or not result:
        why = str(result.get("unavailable") or "no comparison was made").strip().splitlines()[0][:300]
        return [
            evidence(CODE, "unavailable", Severity.WARN, outcome, observed=why, expected="a reference that can run")
        ]
    if result.get("error"):
        # A size beyond its range, or an index, that the program refuses is no mere remark any more.
        error = str(result["error"])[:300]
        symptom = recognise(error).name
        index = symptom == "index-out-of-bounds"
        refused = index or history.has(RANGE, "low", "high")
        return [
            evidence(
                CODE,
                "raises",
                Severity.ERROR if refused else Severity.WARN,
                outcome,
                observed=f"the exported program raises: {error}",
                expected="outputs",
                facts={"error": error, **({"symptom": symptom} if index else {})},
            )
        ]
    return [
        *_numbers(case, history, outcome),
        *[_mutation(item, outcome) for item in objects(result.get("mutation")) if item.get("agrees") is False],
        *_aliases(result, outcome),
        *_unused(result, outcome),
    ]


def _unfinished_reason(case: Case, outcome: Outcome) -> Evidence:
    """The package had answered before: an end before its call, in the reference or at our limit is not its fault."""
    ending = read_ending(CODE, case, outcome)
    if outcome.stage.startswith(("run", "scan", "unload")) and not isinstance(outcome.ending, TimedOut):
        return ending
    why = f"{ending.observed} ({outcome.stage})"
    return evidence(CODE, "unavailable", Severity.WARN, outcome, observed=why, expected="a reference that can run")


def _numbers(case: Case, history: History, outcome: Outcome) -> list[Evidence]:
    """Weights and outputs; wrong outputs need no finding of their own where other weights explain them."""
    source = RunSource(run=outcome.id, stream="result")
    weights, outputs = read_weights(outcome), read_comparison(outcome)
    another = of_another_program(history.findings)
    # What else was compared, and what was not.
    told = []
    if weights.equal and not weights.names:
        told.append(f"{weights.equal} weights equal")
    if weights.alone:
        told.append(f"{len(weights.alone)} not compared (folded, written into the code, or not used)")
    if weights.unread:
        told.append(f"weights not compared: {weights.unread}")
    judge = reference_comparison(outcome).get(FLOAT64)
    kept = judge.get("kept") if isinstance(judge, dict) else None
    if isinstance(kept, list) and kept:
        told.append(f"not in float64: {', '.join(map(str, kept[:4]))}")
    found = output_finding(outputs, source, note="".join(f"; {item}" for item in told), another=another)
    if not weights.names:
        return [found]
    named = weights_finding(weights, outputs, source)
    return [named] if found.severity is Severity.ERROR else [found, named]


def _mutation(item: JsonObject, outcome: Outcome) -> Evidence:
    ours, theirs = item.get("package") is True, item.get("reference") is True
    if ours and theirs:
        observed, expected = (
            f"different values written; the difference is {item.get('max_abs_diff')}",
            "what the reference writes",
        )
    elif ours:
        observed, expected = "changed by the package", "unchanged, as by the reference"
    else:
        observed, expected = "unchanged by the package", "changed, as by the reference"
    path = str(item.get("path"))
    facts: dict[str, FactValue] = {"path": path, "package": ours, "reference": theirs, "aliased": False}
    return evidence(
        CODE, "mutation", Severity.ERROR, outcome, subject=path, observed=observed, expected=expected, facts=facts
    )


def _aliases(result: JsonObject, outcome: Outcome) -> list[Evidence]:
    """A package that shares less than its reference harms nobody who does not write to the outputs."""
    found = []
    for item in objects(result.get("alias")):
        ours, theirs = (_names(item.get(side)) for side in ("package", "reference"))
        more = set(ours) - set(theirs)
        found.append(
            evidence(
                CODE,
                "alias",
                Severity.WARN if more else Severity.INFO,
                outcome,
                subject=str(item.get("path")),
                observed=f"shares memory with {', '.join(ours) or 'nothing'}",
                expected=f"with {', '.join(theirs) or 'nothing'}, as of the reference",
                facts={"partners": ours, "reference_partners": theirs},
            )
        )
    return found


def _unused(result: JsonObject, outcome: Outcome) -> list[Evidence]:
    named = _names(result.get("unused_tolerances"))
    if not named:
        return []
    there = tuple(str(item.get("path")) for item in objects(result.get("outputs")))
    observed, expected = f"a tolerance for {', '.join(named)}", f"one of {', '.join(there)}"
    return [evidence(CODE, "tolerance", Severity.WARN, outcome, observed=observed, expected=expected)]


def _names(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="do outputs, weights and side effects agree with the exported program?",
    asked_when="when --reference was given and the plain run returned",
    plan=plan,
    read=read,
)
