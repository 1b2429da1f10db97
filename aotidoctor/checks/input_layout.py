"""An input is sparse, nested or has another layout that compiled code cannot read.

What it does
    Looks at the layout of each tensor: compiled code reads strided memory only.

Why it matters
    A sparse tensor has no strides and no single data pointer, so the call raises or reads something else.

Example:
    args[0]: observed layout sparse_csr, expected strided

When it is wrong
    A quantized tensor is strided; its fault is the dtype, see input_dtype. nn.Parameter is harmless.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import contract_source, leaf_check, tensor_pairs
from aotidoctor.model.case import Case

FIND = Finder("AD-IN-007", "input_layout")


def run(case: Case) -> Observations:
    """One finding per tensor that is not strided, or whose requires_grad a guard refuses."""
    found = case.artifact.precompiled.function if case.artifact.precompiled is not None else None
    grads = found.requires_grad if found is not None else {}
    pairs = list(tensor_pairs(case))
    for pair in pairs:
        if (
            (name := pair.spec.generated_name or "") in grads
            and pair.spec.used is not False
            and pair.tensor.requires_grad != grads[name]
        ):
            yield FIND.error(
                "requires-grad",
                pair.path,
                observed=f"requires_grad={pair.tensor.requires_grad}",
                expected=f"requires_grad={grads[name]}, as when it was compiled",
                source=contract_source(case, pair.spec),
                message=f"{pair.path} has requires_grad={pair.tensor.requires_grad}, and the guards of the compiled "
                f"function want {grads[name]}",
                facts=pair.facts(
                    what="requires_grad",
                    remedy=f"Pass {pair.path}.{'requires_grad_()' if grads[name] else 'detach()'}.",
                ),
            )
    for pair in pairs:
        if pair.tensor.layout != "strided":
            yield FIND.error(
                "nested" if pair.tensor.layout in ("nested", "jagged") else "sparse",
                pair.path,
                observed=f"layout {pair.tensor.layout}",
                expected="strided",
                source=contract_source(case, pair.spec),
                facts=pair.facts(observed_layout=pair.tensor.layout),
            )


CHECK = leaf_check(FIND, run)
