"""An input holds NaN or Inf.

What it does
    Reads the values of small tensors in the inputs file and counts NaN and Inf. Large tensors are left to the run.

Why it matters
    Before a kernel is blamed for NaN in the output, the input has to be clean.

Example:
    args[0]: observed 1 NaN (first at element 5), expected finite values

When it is wrong
    -inf in an attention mask is meant so: Inf is only a note, and NaN that never reaches an output is harmless.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.pairs import TensorPair, leaf_check, tensor_pairs
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence

FIND = Finder("AD-IN-019", "input_nan")


def run(case: Case) -> Findings:
    """One finding per tensor with a NaN (warning) or an Inf (note)."""
    pairs = [pair for pair in tensor_pairs(case, "stride") if pair.tensor.stats is not None]
    return [_finding(pair) for pair in pairs if pair.tensor.stats and (pair.tensor.stats.nan or pair.tensor.stats.inf)]


def _finding(pair: TensorPair) -> Evidence:
    stats = pair.tensor.stats
    nan, inf = (stats.nan, stats.inf) if stats is not None else (0, 0)
    state = FIND.warn if nan else FIND.info
    first = f" (first at element {stats.first_nonfinite})" if stats and stats.first_nonfinite is not None else ""
    return state(
        "nan" if nan else "inf",
        pair.path,
        observed=f"{nan} NaN and {inf} Inf{first}",
        expected="finite values",
        facts=pair.facts(nan=nan, inf=inf),
    )


CHECK = leaf_check(FIND, run)
