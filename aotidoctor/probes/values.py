"""NaN and Inf: in the inputs, in the constants, in the outputs?

What it does
    Counts NaN and Inf in the inputs, the constants and the outputs of the plain run.

Why it matters
    NaN in an output has three different remedies: clean the input, mend the weights, or find the kernel.

Example:
    result: observed 32 NaN from finite inputs and constants, expected finite values

When it is wrong
    -inf in outputs can be meant (masked logits): without NaN it is only a warning.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.case import Case
from aotidoctor.model.contract import HostNeeds
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import Outcome
from aotidoctor.probes.probe import History, Probe, Reuse, evidence, succeeded, unasked
from aotidoctor.probes.results import Value, constants, inputs, outputs

CODE, NAME = "AD-RUN-005", "values"
HALF = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def plan(case: Case, history: History) -> Reuse | NotChecked:
    """Answered by the plain run."""
    if case.inputs is None or not succeeded(history.outcomes.get("plain_run")):
        return unasked(CODE, NAME, "the plain run gave no outputs")
    return Reuse(probe="plain_run")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: clean, nan-output or inf-output with what the inputs and constants hold."""
    results = outputs(outcome, 0)
    bad = [value for value in results if value.nan or value.inf]
    if not bad:
        return [evidence(CODE, "clean", Severity.INFO, outcome, observed="finite outputs", expected="finite outputs")]
    return [_finding(bad[0], outcome, _unwritten(case))]


def _unwritten(case: Case) -> tuple[str, ...]:
    """What the contract takes for memory that nobody wrote, of the kernels that hold a NaN as a constant.

    A NaN that the model writes on purpose is not among them.
    """
    needs = case.contract.needs if case.contract is not None else HostNeeds()
    return tuple(text for text in needs.uninitialized_ops if any(kernel in text for kernel in needs.nan_constants))


def _finding(bad: Value, outcome: Outcome, unwritten: tuple[str, ...]) -> Evidence:
    dirty_inputs = [value.path for value in inputs(outcome) if value.nan or (bad.nan == 0 and value.inf)]
    dirty_constants = [value.path for value in constants(outcome) if value.nan or value.inf]
    half = bad.dtype in HALF or any(value.dtype in HALF for value in [*inputs(outcome), *constants(outcome)])
    facts: dict[str, FactValue] = {
        "input_nan": bool(dirty_inputs),
        "constant_nan": bool(dirty_constants),
        "clean": not dirty_inputs and not dirty_constants,
        "nan_constant": bool(unwritten),
        "half": half,
        "dtype": bad.dtype,
        "output": bad.path,
        "nan": bad.nan,
        "inf": bad.inf,
    }
    return evidence(
        CODE,
        "nan-output" if bad.nan else "inf-output",
        Severity.ERROR if bad.nan or dirty_constants or half else Severity.WARN,
        outcome,
        subject=", ".join(dirty_inputs or dirty_constants or unwritten) or bad.path,
        observed=f"{bad.nan} NaN and {bad.inf} Inf in {bad.path}{_origin(dirty_inputs, dirty_constants)}",
        expected="finite values",
        facts=facts,
    )


def _origin(dirty_inputs: list[str], dirty_constants: list[str]) -> str:
    if dirty_inputs:
        return f", and in {', '.join(dirty_inputs)}"
    if dirty_constants:
        return f", and in the constants {', '.join(dirty_constants[:4])}"
    return " from finite inputs and constants"


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="NaN or Inf, and where from?",
    asked_when="when the plain run returned (no further run)",
    plan=plan,
    read=read,
)
