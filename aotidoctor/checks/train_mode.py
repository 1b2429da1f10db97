"""The model was exported in training mode.

What it does
    Looks in the kernels' ATen origins for batch norm that computes batch statistics and updates its running ones.

Why it matters
    The result for one sample depends on the other samples of the batch, and each call changes the model. Nothing fails.

Example
    _native_batch_norm_legit_functional: observed batch statistics, expected running statistics (model.eval())

When it is wrong
    A model that is meant to adapt while it serves does this on purpose. Instance norm without running statistics has a
    different origin and is not reported.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FileSource

FIND = Finder("AD-OUT-001", "train_mode")
# Only these write the running statistics; eval mode uses ..._no_training or plain arithmetic on constants.
TRAINING_ORIGINS = ("_native_batch_norm_legit_functional", "_batch_norm_with_update_functional", "cudnn_batch_norm")


def run(case: Case) -> Findings:
    """One finding for the first kernel with such an origin."""
    if case.contract is None:
        return FIND.unchecked("the package contains no contract (no wrapper.cpp)")
    for kernel in case.contract.kernels:
        # Generated kernels carry their origins in their name, extern calls in a comment.
        names = (kernel.name, *kernel.origins)
        origin = next((origin for origin in TRAINING_ORIGINS if any(origin in name for name in names)), None)
        if origin is not None:
            member = case.contract.member
            return FIND.error(
                "batch-norm",
                kernel.name,
                observed=f"batch statistics ({origin})",
                expected="running statistics (export after model.eval())",
                source=FileSource(file=member, line=kernel.line) if member is not None else None,
                facts={"kernel": kernel.name, "origin": origin},
            )
    return None


CHECK = FIND.check(run, facts=("call",))
