"""Two inputs share memory.

What it does
    Compares the storages and the element ranges of the tensors.

Why it matters
    It matters only if the model writes to one of them: the other then changes under the kernel that reads it. Only a
    run can show this; here it is a note.

Example:
    args[0], args[1]: observed one storage, expected separate memory if the model writes to its inputs

When it is wrong
    Models that only read their inputs are not affected.
"""

from __future__ import annotations

from itertools import combinations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.call_overlay import leaf_check, tensor_pairs
from aotidoctor.checks.matching.kernel_reads import span
from aotidoctor.model.case import Case
from aotidoctor.model.inputs import TensorDesc

FIND = Finder("AD-IN-018", "input_alias")


def run(case: Case) -> Findings:
    """One note per couple of tensors whose elements overlap in memory."""
    pairs = list(tensor_pairs(case))
    return [
        FIND.info(
            "overlap",
            f"{a.path}, {b.path}",
            observed="one storage, overlapping elements",
            expected="separate memory if the model writes to its inputs",
            facts={"path": b.path, "other": a.path},
        )
        for a, b in combinations(pairs, 2)
        if _overlap(a.tensor, b.tensor)
    ]


def _overlap(a: TensorDesc, b: TensorDesc) -> bool:
    if a.storage is None or a.storage != b.storage or a.numel == 0 or b.numel == 0:
        return False
    return a.storage_offset < b.storage_offset + span(b) and b.storage_offset < a.storage_offset + span(a)


CHECK = leaf_check(FIND, run, facts=("input", "call", "launch"))
