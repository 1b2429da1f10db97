"""An input has a different number of dims from what the compiled code reads.

What it does
    Compares the number of dims of each tensor with the rank that the package's own size and stride checks show. If they
    show none (before torch 2.7), it finds a tensor that holds exactly what one iteration of a kernel's outermost loop
    reads, and one that the loops iterate over in more or fewer dims.

Why it matters
    The compiled checks never test the rank: too few dims are read past the end of the sizes, so the message mentions a
    "dim value" that does not exist; without the checks the wrong number of rows is computed silently.

Example:
    args[0]: observed 3 dims (1, 8, 1024), expected 2

When it is wrong
    Shape (1,) for a 0-d input is also one element: it gives the right answer and is only a warning.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.kernel_reads import misfits, short_reads
from aotidoctor.checks.matching.leaves import contract_source, leaf_check, tensor_pairs, unread_reason
from aotidoctor.localize.call_overlay import one_element
from aotidoctor.model.case import Case
from aotidoctor.model.contract import describe_spec
from aotidoctor.model.evidence import plural

FIND = Finder("AD-IN-012", "input_rank")


def run(case: Case) -> Observations:
    """One finding per tensor of another rank."""
    pairs = list(tensor_pairs(case, "rank"))
    for pair in pairs:
        shape, spec = pair.tensor.shape, pair.spec
        if spec.rank not in (None, len(shape)):
            harmless = one_element(spec, pair.tensor) and case.artifact.precompiled is None
            state = FIND.warn if harmless or spec.used is False else FIND.error
            yield state(
                "one-element" if harmless else "rank",
                pair.path,
                observed=f"{plural(len(shape), 'dim')} {shape}",
                expected=f"{plural(spec.rank or 0, 'dim')}: {describe_spec(spec)}",
                source=contract_source(case, spec),
                facts=pair.facts(observed_shape=shape, expected_rank=spec.rank),
            )
    read = list(tensor_pairs(case, "stride"))
    for one in short_reads(read):
        if one.slice and not one.folded:
            shape = one.pair.tensor.shape
            yield FIND.error(
                "slice",
                one.pair.path,
                observed=f"{plural(len(shape), 'dim')} {shape}, {one.given} elements",
                expected=f"one more dim: a kernel reads {one.needed} elements ({one.expr}) in groups of {one.given}",
                source=contract_source(case, one.pair.spec),
                facts=one.facts(),
            )
    for walk in misfits(read):
        if walk.kind == "rank":
            shape, rank = walk.pair.tensor.shape, len(walk.steps.turns)
            yield FIND.error(
                "walk",
                walk.pair.path,
                observed=f"{plural(len(shape), 'dim')} {shape}",
                expected=f"{rank}: a kernel iterates over it as {walk.steps}",
                source=contract_source(case, walk.pair.spec),
                facts={**walk.facts(), "expected_rank": rank},
            )
    if unread := [pair.path for pair in pairs if pair.spec.rank is None and pair.spec.used is not False]:
        yield FIND.unchecked(unread_reason(case, "shape", unread))


CHECK = leaf_check(FIND, run, facts=("input", "input-check", "assert", "symbol"))
