"""Are there NaN or Inf in the outputs, and do they come from the inputs or constants?

What it does
    Counts NaN and Inf in the inputs and the outputs of the plain run; if an output has any, also in the constants that
    the package contains, which a separate process reads.

Why it matters
    NaN in an output has three different remedies: clean the input, correct the weights, or find the kernel.

Example:
    result: observed 32 NaN from finite inputs and constants, expected finite values

When it is wrong
    -inf in outputs can be intended (masked logits): without NaN it is only a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.answers import ObservedTensor
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request
from aotidoctor.model.torch_names import HALF
from aotidoctor.probes.payload import call_outputs, called, run_of, run_request, stored_rows
from aotidoctor.probes.probe import History, Reuse, RunFinder, succeeded

CODE, NAME = "AD-RUN-005", "values"
FIND = RunFinder(CODE, NAME, __doc__)
NONFINITE = ("nan-output", "inf-output")
# The check of strides: a package may use the strides of its inputs.
STRIDE = "AD-IN-014"


def plan(case: Case, history: History) -> Request | Reuse | NotChecked:
    """Reuse the plain run if all outputs are finite: then the content of the weights does not matter."""
    plain = history.plain
    if plain is None or case.inputs is None or not succeeded(plain):
        return FIND.unchecked("the plain run returned no outputs")
    if "values" not in run_of(plain).observe:
        return FIND.unchecked("aotidoctor could not look at the values")
    if not _bad(plain) or explains_values(history):
        return Reuse(probe="plain_run")
    changes = {"inputs": None, "observe": ("constants",), "stored": stored_rows(case)}
    return run_request(case, NAME, "the constants of the package", **changes)


def explains_values(history: History) -> bool:
    """Whether a fault of the inputs can make NaN with clean weights; strides may turn out to be harmless."""
    return any(item.code != STRIDE for item in history.errors("AD-IN"))


def _bad(plain: Outcome) -> list[ObservedTensor]:
    return [value for value in call_outputs(plain, 0) if value.nan or value.inf]


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: clean, nan-output or inf-output, with the content of inputs and constants."""
    plain = history.plain or outcome
    bad = _bad(plain)
    if not bad:
        return [FIND.info(plain)("clean", None, observed="finite outputs", expected="finite outputs")]
    weights = None if explains_values(history) else outcome
    # Operators that may read unwritten memory, in kernels with a NaN as a constant.
    needs = case.needs
    unwritten = [text for text in needs.uninitialized_ops if any(kernel in text for kernel in needs.nan_constants)]
    return [_finding(bad[0], plain, weights, tuple(unwritten))]


def _finding(bad: ObservedTensor, plain: Outcome, weights: Outcome | None, unwritten: tuple[str, ...]) -> Evidence:
    # Inf is looked at only where no input has NaN: -inf in a mask is meant so.
    dirty_inputs = [value.path for value in called(plain).inputs if bad.nan and value.nan]
    dirty_inputs = dirty_inputs or [value.path for value in called(plain).inputs if value.nan or value.inf]
    held = called(weights).constants if weights is not None else []
    dirty_constants = [value.name for value in held if value.nan or value.inf]
    half = bad.dtype in HALF or any(value.dtype in HALF for value in [*called(plain).inputs, *held])
    # If reading them failed, the run was repeated without that.
    read_all = weights is not None and succeeded(weights) and run_of(weights).observe != ()
    nan, inf = bad.nan or 0, bad.inf or 0
    facts: dict[str, FactValue] = {
        "input_nan": any(value.nan or (nan == 0 and value.inf) for value in called(plain).inputs),
        "input_inf": bool(dirty_inputs),
        "constant_nan": bool(dirty_constants),
        "clean": read_all and not dirty_inputs and not dirty_constants,
        "nan_constant": bool(unwritten),
        "half": half,
        "dtype": bad.dtype,
        "output": bad.path,
        "nan": nan,
        "inf": inf,
    }
    origin = " from finite inputs and constants" if read_all else " from finite inputs (the constants were not read)"
    if dirty_inputs:
        origin = f", and in {', '.join(dirty_inputs)}"
    elif dirty_constants:
        origin = f", and in the constants {', '.join(dirty_constants[:4])}"
    return FIND.at(Severity.ERROR if nan or dirty_constants or half else Severity.WARN, plain)(
        "nan-output" if nan else "inf-output",
        ", ".join(dirty_inputs or dirty_constants or unwritten) or bad.path,
        observed=f"{nan} NaN and {inf} Inf in {bad.path}{origin}",
        expected="finite values",
        facts=facts,
    )


def with_finite_inputs(findings: Sequence[Evidence]) -> list[Evidence]:
    """The findings after a run whose inputs were made finite had the same NaN: it does not come from them."""
    return [
        replace(
            one,
            subject=str(one.facts["output"]),
            observed="{nan} NaN and {inf} Inf in {output}, with finite inputs too".format(**one.facts),
            facts={**one.facts, "input_nan": False, "input_inf": False, "clean": not one.facts["constant_nan"]},
        )
        if one.code == CODE and one.facts.get("input_inf")
        else one
        for one in findings
    ]


PROBE = FIND.probe(plan, read, "when the plain run returned (a further run only for NaN or Inf)")
