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

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import leaf_check, tensor_pairs
from aotidoctor.model.case import Case

FIND = Finder("AD-IN-019", "input_nan")


def run(case: Case) -> Observations:
    """One finding per tensor with a NaN (warning) or an Inf (note)."""
    for pair in tensor_pairs(case, "stride"):
        stats = pair.tensor.stats
        if stats is None or not (stats.nan or stats.inf):
            continue
        state = FIND.warn if stats.nan else FIND.info
        first = f" (first at element {stats.first_nonfinite})" if stats.first_nonfinite is not None else ""
        yield state(
            "nan" if stats.nan else "inf",
            pair.path,
            observed=f"{stats.nan} NaN and {stats.inf} Inf{first}",
            expected="finite values",
            facts=pair.facts(nan=stats.nan, inf=stats.inf),
        )


CHECK = leaf_check(FIND, run)
