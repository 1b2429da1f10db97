"""A tensor carries a conj or neg bit that compiled code does not resolve.

What it does
    Reads the conj and neg bits of each tensor.

Why it matters
    x.conj() and torch._neg_view(x) share the memory of x and set a bit. Compiled code reads the memory but not the bit,
    so it computes with the unconjugated or unnegated values; AOTI_RUNTIME_CHECK_INPUTS does not detect it either.

Example:
    args[0]: observed the conj bit, expected resolved values (x.resolve_conj())

When it is wrong
    An input whose values the model does not use is not affected.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import contract_source, leaf_check, tensor_pairs
from aotidoctor.model.case import Case

FIND = Finder("AD-IN-011", "input_lazy_bit")


def run(case: Case) -> Observations:
    """One finding per tensor with a bit set."""
    for pair in tensor_pairs(case, "rank"):
        if pair.tensor.conj or pair.tensor.neg:
            yield FIND.error(
                "conj" if pair.tensor.conj else "neg",
                pair.path,
                observed=f"the {'conj' if pair.tensor.conj else 'neg'} bit",
                expected=f"resolved values (resolve_{'conj' if pair.tensor.conj else 'neg'}())",
                source=contract_source(case, pair.spec),
                facts=pair.facts(),
            )


CHECK = leaf_check(FIND, run)
