"""The dtype of an input differs from the compiled one.

What it does
    Compares the dtype of each tensor with the one compiled into the package.

Why it matters
    Nothing converts: the kernel reads the bytes as its own type. int32 ids read as int64 combine two ids into one value
    and surface as "index out of bounds"; a narrower type is read past its end; most other cases give silently wrong
    numbers.

Example:
    args[0]: observed int32, expected int64

When it is wrong
    A uint8 (or int8) mask of zeros and ones for a bool input has the same bytes and gives the right answer: a warning.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import contract_source, hidden_reason, leaf_check, tensor_pairs, unread_reason
from aotidoctor.localize.call_overlay import is_mask_for
from aotidoctor.model.case import Case

FIND = Finder("AD-IN-010", "input_dtype")


def run(case: Case) -> Observations:
    """One finding per tensor of another dtype."""
    pairs = list(tensor_pairs(case, "dtype"))
    for pair in pairs:
        wanted, given = pair.spec.dtype, pair.tensor.dtype
        if wanted in (None, given):
            continue
        mask = is_mask_for(wanted or "", pair.tensor) and case.artifact.precompiled is None
        state = FIND.warn if mask or pair.spec.used is False else FIND.error
        yield state(
            "same-width-mask" if mask else "dtype",
            pair.path,
            observed=given,
            expected=f"{wanted}",
            source=contract_source(case, pair.spec),
            facts=pair.facts(observed_dtype=given, expected_dtype=wanted),
        )
    unread = [pair.path for pair in pairs if pair.spec.dtype is None and pair.spec.used is not False]
    if reason := hidden_reason(case) or (unread_reason(case, "dtype", unread) if unread else None):
        yield FIND.unchecked(reason)


CHECK = leaf_check(FIND, run, facts=("input", "input-check"))
