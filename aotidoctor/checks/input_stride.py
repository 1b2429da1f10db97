"""The strides of an input differ from the compiled ones: transposed, sliced, expanded or channels-last.

What it does
    Compares each constant stride of the contract with the tensor's, and the symbolic ones where the sizes tell them.

Why it matters
    Compiled code walks the memory with its own strides. x.t(), x[:, ::2], x.expand(...) and channels_last look right in
    Python and are read as other elements, or past the end: silent wrong numbers.

Example:
    args[0].stride: observed (1, 8), expected (8, 1)

When it is wrong
    Strides of dims with one element are never used, nor are those of an empty tensor; they are not compared. A storage
    offset is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.checks.check import Check, Finder
from aotidoctor.checks.matching.pairs import TensorPair, contract_source, missing_reason, overlay_of, tensor_pairs
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked

FIND = Finder("AD-IN-014", "input_stride")


def run(case: Case) -> Sequence[Evidence] | NotChecked:
    """One finding per tensor with other strides."""
    if overlay_of(case) is None:
        return FIND.unchecked(missing_reason(case))
    return [_finding(case, pair) for pair in tensor_pairs(case, "stride") if _differs(pair)]


def _differs(pair: TensorPair) -> bool:
    tensor, wanted = pair.tensor, pair.spec.strides
    if wanted is None or tensor.stride is None or tensor.numel == 0:
        return False
    return any(
        want is not None and want != got and size != 1
        for want, got, size in zip(wanted, tensor.stride, tensor.shape, strict=False)
    )


def _finding(case: Case, pair: TensorPair) -> Evidence:
    wanted, stride = pair.spec.strides or (), pair.tensor.stride or ()
    shown = ", ".join("?" if value is None else str(value) for value in wanted)
    state = FIND.warn if pair.spec.used is False else FIND.error
    return state(
        "stride",
        f"{pair.path}.stride",
        observed=f"{stride} of shape {pair.tensor.shape}",
        expected=f"({shown})",
        source=contract_source(case, pair.spec),
        facts=pair.facts(observed_stride=stride, expected_stride=wanted, observed_shape=pair.tensor.shape),
    )


CHECK = Check(
    code=FIND.code,
    name=FIND.name,
    cause="input-stride",
    stage="inputs",
    needs=("inputs_file", "input_kwargs", "input_tree", "input_nontensor", "input_count"),
    run=run,
)
