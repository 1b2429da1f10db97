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

import re
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.comparison import read_comparison, read_weights
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, RunSource, Severity
from aotidoctor.model.record import JsonObject, JsonValue, objects
from aotidoctor.model.report import merged_facts
from aotidoctor.model.run import Outcome, Request, Signalled, TimedOut
from aotidoctor.probes.payload import reference_comparison, run_request, stored_rows
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Reuse, RunFinder, succeeded
from aotidoctor.probes.reference_findings import CODE, FURTHER, is_another_program, output_finding, weights_finding
from aotidoctor.probes.symptoms import recognise

NAME, EMULATION = "reference", "emulation"
FIND = RunFinder(CODE, NAME, __doc__)
# The stage of the worker after the outputs were compared, when only the float64 run is missing.
FLOAT64 = "float64"
# The job that runs the reference without the package.
ALONE = "reference"
RANGE = "AD-IN-017"
MOST_PAIRS = 8
# Symptoms of a host or an environment in which the reference cannot run, and those that a playbook names by themselves.
LACKING = (
    "alloc-failed", "cuda-oom", "cuda-no-device", "cuda-driver", "cuda-no-image", "not-compiled-with", "schema-missing",
    "op-unsupported-device", "class-missing", "unsupported-device-key",
)  # fmt: skip
PLAYBOOKS = ("index-out-of-bounds", "integer-division", "runtime-assert")
# What export found that the sizes must fulfil: Guard failed: x.size()[0] % 2 == 0
_GUARD = re.compile(r"Guard failed: ([^\n]{1,240})")
_SIZED = re.compile(r"\b([A-Za-z_]\w{0,60})\.size\(\)")
# A sum, a product or a remainder that must be equal to something. Equal sizes and fixed ones are for the checks.
_BRANCH = re.compile(r"[%*/+-][^=\n]{1,80} == |== [^\n]{1,80}[%*/+-]")
GUARDED = (
    "Call it with sizes for which `{condition}` holds: the model took that branch at export, and the package has no "
    "other. For all sizes, write the branch without an `if` on a size (torch.where, torch.cond), and export again."
)
MODEL_REFUSES = (
    "The model asks for this itself: the inputs that it was exported with are refused with the same message. Change "
    "the arguments of that call in the model, and export again."
)


def plan(case: Case, history: History) -> Request | Reuse | NotChecked:
    """Plan a run if a reference was given and the plain run returned; else reuse the emulation if there was one."""
    if case.options.reference is None:
        return FIND.unchecked("no --reference was given", moot=False)
    # A package that could not be run here and was emulated.
    emulated = history.outcomes.get(EMULATION)
    if "plain_run" not in history.outcomes and emulated is not None and "reference" in emulated.result:
        return Reuse(probe=EMULATION)
    if case.inputs is not None and _needs_answer(history) and not history.static_errors():
        request = run_request(case, NAME, "whether the reference takes these inputs", **comparison(case))
        return replace(request, job=ALONE)
    if case.inputs is None or not succeeded(history.plain):
        return FIND.unchecked("the plain run returned no outputs to compare")
    return run_request(case, NAME, "against the exported program", calls=1, **comparison(case))


def _needs_answer(history: History) -> bool:
    """Whether the package was killed in its call, or refused an index that no input explains."""
    plain = history.plain
    if plain is None or not plain.stage.startswith("run"):
        return False
    refused = plain.error is not None and recognise(plain.error.message).name == "index-out-of-bounds"
    explained = any(item.facts.get("paths") for item in history.of("AD-RUN-022"))
    return isinstance(plain.ending, Signalled) or (refused and not explained)


def comparison(case: Case) -> dict[str, object]:
    """The fields of a run that compares with the reference of the options."""
    return {
        "reference": case.options.reference,
        "stored": stored_rows(case),
        "measure": case.options.measure,
        "unread": unread_inputs(case),
        "tolerances": case.options.tolerances,
    }


def unread_inputs(case: Case) -> tuple[tuple[str, str], ...]:
    """Inputs that the package never reads, each with those of the same dtype and sizes that it reads."""
    leaves = case.contract.tensor_leaves() if case.contract is not None else ()
    pairs = [
        (leaf.path, other.path)
        for leaf in leaves
        if leaf.used is False
        for other in leaves
        if other.used and (other.dtype, other.dims) == (leaf.dtype, leaf.dims)
    ]
    return tuple(pairs[:MOST_PAIRS])


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding of the outputs: agrees, precision, differs, nan, dtype or structure; else raises or unavailable.

    In addition weights (instead of the outputs that they explain), mutation, alias and tolerance if they apply.
    """
    result = reference_comparison(outcome)
    if not succeeded(outcome) and not (outcome.stage == FLOAT64 and result):
        ending = read_ending(CODE, case, outcome)
        # The package had answered before: only an end in its own call is its fault.
        if outcome.stage.startswith(("run", "scan", "unload")) and not isinstance(outcome.ending, TimedOut):
            return [ending]
        why, expected = f"{ending.observed} ({outcome.stage})", "a reference that can run"
        return [FIND.warn(outcome)("unavailable", None, observed=why, expected=expected)]
    if result.get("unavailable") or not result:
        why = str(result.get("unavailable") or "no comparison was made").strip().splitlines()[0][:300]
        expected = "a reference that can run"
        return [FIND.warn(outcome)("unavailable", None, observed=why, expected=expected)]
    if result.get("error"):
        return [raised_evidence(case, history, result, outcome)]
    if outcome.request.job == ALONE:
        observed, expected = "the reference returns for these inputs", "what the package does not"
        return [FIND.info(outcome)("returns", None, observed=observed, expected=expected)]
    if (merged := _merged(result, outcome)) is not None:
        return [merged]
    found = _numbers(case, history, outcome)
    found += [_mutation(item, outcome) for item in objects(result.get("mutation")) if item.get("agrees") is False]
    found += _aliases(result, outcome)
    named = _names(result.get("unused_tolerances"))
    if named:
        outputs = ", ".join(str(item.get("path")) for item in objects(result.get("outputs")))
        observed, expected = f"a tolerance for {', '.join(named)}", f"one of {outputs}"
        found.append(FIND.warn(outcome)("tolerance", None, observed=observed, expected=expected))
    return found


# What ATen raises where an operator has no kernel for a dtype (2.6 to 2.15).
_NO_KERNEL = re.compile(r"not implemented for '\w{1,40}'")


def _guarded_path(case: Case, condition: str) -> str | None:
    """The user's path of the first input that a guard names."""
    leaves = case.reference.leaves if case.reference is not None else ()
    name = _SIZED.search(condition)
    return next((leaf.path for leaf in leaves if name is not None and leaf.name == name[1]), None)


def raised_evidence(
    case: Case, history: History, result: JsonObject, outcome: Outcome, *, who: str = "the reference"
) -> Evidence:
    """The reference refuses these inputs: an error, unless it is another program or lacks something here."""
    error = str(result["error"])[:300]
    symptom = recognise(error)
    if symptom.name in LACKING:
        expected = "a reference that can run"
        return FIND.warn(outcome)("unavailable", None, observed=error, expected=expected)
    refused = result.get("refused")
    # Bounds of the program may be narrower than what its code can do; a size out of its range is an error.
    guard = _GUARD.search(error)
    bound = guard is not None and _BRANCH.search(guard[1]) is None
    harmless = is_another_program(history.findings) or (bound and not history.has(RANGE, "low", "high"))
    name = symptom.name if symptom.name in PLAYBOOKS else "refused"
    name = name if guard is None else "bound" if harmless or bound else "guard"
    facts: dict[str, FactValue] = {"error": error, "symptom": name}
    subject = None
    if guard is not None:
        subject, condition = _guarded_path(case, guard[1]), guard[1]
        # Text of the program: nothing of it belongs into a command.
        facts |= {"path": subject, "remedy": GUARDED.format(condition=condition[:160])}
    elif isinstance(refused, dict):
        always, operator = refused.get("always") is True, refused.get("operator")
        paths, element = () if always else _names(refused.get("paths")), refused.get("element")
        subject = paths[0] if len(paths) == 1 else None
        facts |= {"paths": paths, "path": subject}
        facts |= {"operator": operator} if isinstance(operator, str) else {}
        facts |= {"what": "a dtype is"} if _NO_KERNEL.search(error) else {}
        if always:
            subject = str(facts.get("operator", "the model"))
            line = f"# {error.splitlines()[0][:120]}: in forward, whatever the inputs are"
            facts |= {"symptom": (name := "refused"), "remedy": MODEL_REFUSES, "command": line}
        elif isinstance(element, str):
            value = refused.get("value")
            facts |= {"element": element, "value": value if isinstance(value, int | float) else None}
    place = f" ({facts['element']} = {facts['value']})" if "element" in facts else f" ({subject})" if subject else ""
    # An exported program has no lines of the user's.
    where = result.get("where")
    if isinstance(where, str):
        facts["where"] = where
        place += f" at {where}"
    what = "its own example inputs as well" if facts.get("remedy") == MODEL_REFUSES else "these inputs"
    by = "" if history.plain is None or not succeeded(history.plain) else ", while the package returned"
    return FIND.at(Severity.WARN if harmless else Severity.ERROR, outcome)(
        "raises",
        subject,
        observed=f"{who} refuses {what}{by}: {error}{place}",
        expected="outputs",
        facts={**facts, "line": error},
    )


def _merged(result: JsonObject, outcome: Outcome) -> Evidence | None:
    """An input that the package never reads, where the reference agrees with another one in its place."""
    merged = result.get("merged")
    if not isinstance(merged, dict):
        return None
    path, other = str(merged.get("path")), str(merged.get("other"))
    return FIND.error(outcome)(
        "merged",
        path,
        observed=f"never read: {other} stands in its place (with it there the reference gives the same outputs)",
        expected="an input that the code reads",
        facts={**merged_facts(path, other)},
    )


def _numbers(case: Case, history: History, outcome: Outcome) -> list[Evidence]:
    """Findings of weights and outputs; wrong outputs need no finding of their own if other weights explain them."""
    source = RunSource(run=outcome.id, stream="result")
    weights, outputs = read_weights(outcome), read_comparison(outcome)
    another = is_another_program(history.findings)
    # What else was compared, and what was not.
    notes = []
    if weights.equal and not weights.names:
        notes.append(f"{weights.equal} weights equal")
    if weights.alone:
        notes.append(f"{len(weights.alone)} not compared (folded, written into the code, or not used)")
    if weights.unread:
        notes.append(f"weights not compared: {weights.unread}")
    judge = reference_comparison(outcome).get(FLOAT64)
    unchanged = judge.get("kept") if isinstance(judge, dict) else None
    if isinstance(unchanged, list) and unchanged:
        notes.append(f"not in float64: {', '.join(map(str, unchanged[:4]))}")
    found = output_finding(outputs, source, note="".join(f"; {item}" for item in notes), another=another)
    casts = _names(judge.get("casts")) if isinstance(judge, dict) else ()
    ours, theirs = found.facts.get("error"), found.facts.get("reference_error")
    # The package has the float64 numbers of the program without its roundings, and the reference has not.
    exact = isinstance(ours, float) and isinstance(theirs, float) and ours <= FURTHER < theirs
    if casts and found.kind == "precision" and exact:
        left_out = f"the program rounds to {' and '.join(casts)} in between, and the package does not"
        expected = f"{found.expected}; they come with emulate_precision_casts=True in inductor_configs"
        found = replace(found, severity=Severity.WARN, observed=f"{found.observed}; {left_out}", expected=expected)
    if not weights.names:
        return [found]
    named = weights_finding(weights, outputs, source)
    return [named] if found.severity is Severity.ERROR else [found, named]


def _mutation(item: JsonObject, outcome: Outcome) -> Evidence:
    ours, theirs = item.get("package") is True, item.get("reference") is True
    if ours and theirs:
        observed = f"different values written; the difference is {item.get('max_abs_diff')}"
        expected = "what the reference writes"
    elif ours:
        observed, expected = "changed by the package", "unchanged, as by the reference"
    else:
        observed, expected = "unchanged by the package", "changed, as by the reference"
    path = str(item.get("path"))
    facts: dict[str, FactValue] = {"path": path, "package": ours, "reference": theirs, "aliased": False}
    return FIND.error(outcome)("mutation", path, observed=observed, expected=expected, facts=facts)


def _aliases(result: JsonObject, outcome: Outcome) -> list[Evidence]:
    """Findings of shared memory. Sharing less than the reference is harmless unless a caller writes to outputs."""
    found = []
    for item in objects(result.get("alias")):
        ours, theirs = (_names(item.get(side)) for side in ("package", "reference"))
        more = set(ours) - set(theirs)
        found.append(
            FIND.at(Severity.WARN if more else Severity.INFO, outcome)(
                "alias",
                str(item.get("path")),
                observed=f"shares memory with {', '.join(ours) or 'nothing'}",
                expected=f"with {', '.join(theirs) or 'nothing'}, as of the reference",
                facts={"partners": ours, "reference_partners": theirs},
            )
        )
    return found


def _names(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


PROBE = FIND.probe(plan, read, "when --reference was given and the plain run returned")
