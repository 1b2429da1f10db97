"""A dim that was fixed at export has another size.

What it does
    Compares each static dim of each tensor with the size compiled into the package.

Why it matters
    The kernel walks the memory with the compiled sizes: a wider row shears, a shorter tensor is read past its end, a
    larger batch is cut off. None of it raises unless AOTI_RUNTIME_CHECK_INPUTS is on.

Example:
    args[0].shape[1]: observed 17, expected 16

When it is wrong
    When the number of dims differs input_rank says so, and this check leaves the tensor alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.checks.check import Check, Finder
from aotidoctor.checks.matching.fits import static_mismatches
from aotidoctor.checks.matching.pairs import (
    LEAF_NEEDS,
    TensorPair,
    contract_source,
    missing_reason,
    overlay_of,
    tensor_pairs,
)
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.spec_text import describe_spec

FIND = Finder("AD-IN-013", "input_shape")


def run(case: Case) -> Sequence[Evidence] | NotChecked:
    """One finding per tensor with a static dim of another size; it names the first such dim."""
    if overlay_of(case) is None:
        return FIND.unchecked(missing_reason(case))
    pairs = tensor_pairs(case, "shape")
    return [_finding(case, pair) for pair in pairs if static_mismatches(pair.spec, pair.tensor)]


def _finding(case: Case, pair: TensorPair) -> Evidence:
    dim, size, wanted = static_mismatches(pair.spec, pair.tensor)[0]
    expected_shape = tuple(dim.static for dim in pair.spec.dims or ())
    state = FIND.warn if pair.spec.used is False else FIND.error
    return state(
        "static",
        f"{pair.path}.shape[{dim}]",
        observed=f"{size} in {pair.tensor.shape}",
        expected=f"{wanted} in {describe_spec(pair.spec)}",
        source=contract_source(case, pair.spec),
        facts=pair.facts(
            dim=dim, size=size, expected_size=wanted, observed_shape=pair.tensor.shape, expected_shape=expected_shape
        ),
    )


CHECK = Check(
    code=FIND.code,
    name=FIND.name,
    cause="input-shape",
    stage="inputs",
    needs=LEAF_NEEDS,
    run=run,
    facts=("input", "input-check", "assert", "symbol"),
)
