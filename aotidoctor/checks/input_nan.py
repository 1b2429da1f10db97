"""An input contains NaN or Inf.

What it does
    Reads the values of small tensors in the inputs file and counts NaN and Inf. Large tensors are left to the run.

Why it matters
    A kernel can be blamed for NaN in the output only if the input is finite.

Example:
    args[0]: observed 1 NaN (first at element 5), expected finite values

When it is wrong
    -inf in an attention mask is intended: Inf is only a note, and NaN that never reaches an output is harmless.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.call_overlay import TensorPair, leaf_check, tensor_pairs
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.inputs import ValueStats

FIND = Finder("AD-IN-019", "input_nan")


def run(case: Case) -> Findings:
    """One finding per tensor with a NaN (warning) or an Inf (note)."""
    pairs = [(pair, pair.tensor.stats) for pair in tensor_pairs(case, "stride")]
    return [_finding(pair, stats) for pair, stats in pairs if stats is not None and (stats.nan or stats.inf)]


def _finding(pair: TensorPair, stats: ValueStats) -> Evidence:
    nan, inf = stats.nan, stats.inf
    state = FIND.warn if nan else FIND.info
    first = f" (first at element {stats.first_nonfinite})" if stats.first_nonfinite is not None else ""
    return state(
        "nan" if nan else "inf",
        pair.path,
        observed=f"{nan} NaN and {inf} Inf{first}",
        expected="finite values",
        facts=pair.facts(nan=nan, inf=inf),
    )


CHECK = leaf_check(FIND, run)
