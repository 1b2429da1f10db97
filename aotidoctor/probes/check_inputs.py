"""What do the package's own input checks report (AOTI_RUNTIME_CHECK_INPUTS=1)?

What it does
    Repeats the run with the package's own input checks switched on. They are compiled into every package since
    PyTorch 2.7, are off by default and are read at the first call of a loaded package.

Why it matters
    They turn a silent fault into an exception, and after each custom operator they compare the real result with the
    result that its fake kernel promised.

Example:
    args[0]: observed "unmatched dtype, expected: 4(at::kLong), but got: 3"

When it is wrong
    They name inputs by flat index, never test the rank first, stop at the first fault and refuse harmless calls (batch
    1 below a compiled minimum, a uint8 mask for bool).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request
from aotidoctor.model.torch_names import CHECK_INPUTS, DEVICE_TYPES, SCALAR_NAMES, scalar_type
from aotidoctor.probes.payload import run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-003", "check_inputs"
FIND = RunFinder(CODE, NAME, __doc__)
INPUT_COMPLAINTS = (
    "check-dtype",
    "check-low",
    "check-high",
    "check-dim",
    "check-stride",
    "check-device",
    "check-input-relation",
)
# Complaints about single dims, which are counted from the left.
_OF_DIMS = ("check-low", "check-high", "check-dim", "check-stride")


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if a complaint would add something to the static comparison."""
    if "plain_run" not in history.outcomes or case.inputs is None:
        return FIND.unchecked("there was no call to repeat")
    if checks_compiled_in(case) is False:
        return FIND.unchecked(f"the package has no input checks compiled in: {CHECK_INPUTS} would have no effect")
    if history.hangs_in_operator():
        return FIND.unchecked("it hangs in an operator, and the checks would only wait for it again")
    plain, contract, faults = history.outcomes["plain_run"], case.contract, history.errors("AD-IN")
    if contract is None or contract.source != "wrapper.cpp" or contract.custom_ops:
        adds = plain.stage not in ("load", "setup", "inputs", "import")
    elif succeeded(plain):
        adds = bool(faults)
    else:
        adds = plain.stage.startswith("run") and not history.errors("AD-IN", "AD-HOST")
    if not adds:
        return FIND.unchecked("the contract was compared statically and there is no custom operator to check")
    return replace(run_request(case, NAME, "the package's own input checks", calls=1), env={CHECK_INPUTS: "1"})


def checks_compiled_in(case: Case) -> bool | None:
    """Whether the shared object has the checks; None without an object."""
    objects = case.model.shared_objects if case.model is not None else ()
    return objects[0].features.input_checks if objects else None


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: silent, or the complaint with its facts."""
    if succeeded(outcome):
        return [FIND.info(outcome)("silent", None, observed="no complaint", expected="no complaint")]
    ending = read_ending(CODE, case, outcome)
    symptom = str(ending.facts.get("symptom"))
    words = _in_words(symptom, ending.facts)
    observed, expected, suffix = words or (ending.observed, "no complaint", "")
    given = _input_facts(case, ending)
    leaf = str(given.get("path") or "") or None
    if symptom == "check-op":
        op = ending.facts.get("op")
        leaf = str(op) if op else ending.subject
    dtypes = {"observed_dtype": observed, "expected_dtype": expected} if symptom == "check-dtype" else {}
    # Dims are compared without their number: a complaint about one among too many or too few is not about a size.
    ranks = [item.facts.get("path") or item.subject for item in history.errors("AD-IN-012")]
    rank = {"symptom": "check-rank"} if symptom in _OF_DIMS and leaf is not None and leaf in ranks else {}
    subject = f"{leaf}{suffix}" if leaf is not None else None
    severity = Severity.WARN if _refuses_harmless(case, history, symptom, ending) else Severity.ERROR
    return [
        replace(
            ending,
            severity=severity,
            subject=subject,
            observed=observed,
            expected=expected,
            message=f"{subject or ending.facts.get('stage')}: {ending.facts.get('line') or ending.observed}",
            facts={**ending.facts, **given, **dtypes, **rank},
        )
    ]


def _refuses_harmless(case: Case, history: History, symptom: str, ending: Evidence) -> bool:
    """Whether the static comparison found no more than a warning about this input.

    If the contract is known in full, it is enough that it found no error about any input.
    """
    if symptom not in INPUT_COMPLAINTS or case.contract is None or history.errors("AD-IN"):
        return False
    path = _input_facts(case, ending).get("path")
    opaque = [item.subject for item in history.of("AD-IN-002", "object")]
    if symptom == "check-dtype" and any(whole is not None and str(path).startswith(whole) for whole in opaque):
        return False  # only these checks compare the content of an object of the user's
    if case.contract.source == "wrapper.cpp":
        return True
    for item in history.findings:
        # A finding about a size that several inputs share names all of them.
        places = item.facts.get("places")
        leaves = [str(place).partition(".shape[")[0] for place in places] if isinstance(places, tuple) else []
        about = path in (item.facts.get("path"), *leaves)
        if about and item.code.startswith("AD-IN") and item.severity is Severity.WARN:
            return True
    return False


def _input_facts(case: Case, ending: Evidence) -> dict[str, FactValue]:
    """The user's path of ``input_handles[i]``."""
    index = ending.facts.get("index")
    if case.contract is None or not isinstance(index, str) or not index.isdigit():
        return {}
    leaves = case.contract.tensor_leaves()
    at = int(index)
    return {"path": leaves[at].path, "input_index": at} if at < len(leaves) else {}


def _in_words(symptom: str, facts: Mapping[str, FactValue]) -> tuple[str, str, str] | None:
    """``(observed, expected, suffix of the subject)``; None if the symptom is no complaint about an input.

    They print dtypes and devices as numbers of c10 (``expected: 4(at::kLong), but got: 3``).
    """
    got, wanted, dim = str(facts.get("got")), str(facts.get("wanted")), facts.get("dim")
    match symptom:
        case "check-dtype":
            return (
                scalar_type(_number(got)) or f"dtype {got}",
                SCALAR_NAMES.get(wanted.removeprefix("at::k"), wanted),
                "",
            )
        case "check-low":
            return got, f"at least {wanted}", f".shape[{dim}]"
        case "check-high":
            return got, f"at most {wanted}", f".shape[{dim}]"
        case "check-dim":
            return got, wanted, f".shape[{dim}]"
        case "check-stride":
            return f"{got} at dim {dim}", wanted, ".stride"
        case "check-device":
            return DEVICE_TYPES.get(_number(got), f"device type {got}"), wanted or "cpu", ""
        case _:
            return None


def _number(text: str) -> int:
    return int(text) if text.isdigit() else -1


PROBE = FIND.probe(
    plan, read, "when a fault stayed silent or is unexplained, when custom operators run, or without a static contract"
)
