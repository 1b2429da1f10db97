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

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.call_overlay import contract_source, leaf_check, tensor_pairs
from aotidoctor.model.case import Case

FIND = Finder("AD-IN-007", "input_layout")


def run(case: Case) -> Findings:
    """One finding per tensor that is not strided."""
    return [
        FIND.error(
            "nested" if pair.tensor.layout in ("nested", "jagged") else "sparse",
            pair.path,
            observed=f"layout {pair.tensor.layout}",
            expected="strided",
            source=contract_source(case, pair.spec),
            facts=pair.facts(observed_layout=pair.tensor.layout),
        )
        for pair in tensor_pairs(case)
        if pair.tensor.layout != "strided"
    ]


CHECK = leaf_check(FIND, run)
