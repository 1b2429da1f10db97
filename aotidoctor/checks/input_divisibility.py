"""A dim must be a multiple of a number, but is not.

What it does
    Takes the dims that were compiled as a multiple of a symbol (8*d) and divides.

Why it matters
    The compiled code computes d by integer division: with 30 elements for 8*d it takes 24 and silently drops 6.

Example:
    args[0].shape[0]: observed 30, expected a multiple of 8 (8*s39)

When it is wrong
    Only relations that the package itself asserts are known; older packages contain none.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.kernel_reads import readings
from aotidoctor.checks.matching.leaves import contract_source, leaf_check, tensor_pairs
from aotidoctor.model.case import Case

FIND = Finder("AD-IN-015", "input_divisibility")


def run(case: Case) -> Observations:
    """One finding per dim that leaves a remainder."""
    for reading in readings(tensor_pairs(case, "stride")):
        if reading.remainder:
            yield FIND.error(
                "remainder",
                f"{reading.pair.path}.shape[{reading.dim}]",
                observed=f"{reading.size}",
                expected=f"a multiple of {reading.step} ({reading.expr})",
                source=contract_source(case, reading.pair.spec),
                facts=reading.pair.facts(
                    dim=reading.dim,
                    size=reading.size,
                    step=reading.step,
                    remainder=reading.remainder,
                    symbol=reading.symbol,
                    expected_size=reading.size - reading.remainder,
                ),
            )


CHECK = leaf_check(FIND, run, facts=("input", "assert", "symbol"))
