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

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.kernel_reads import span
from aotidoctor.checks.matching.leaves import leaf_check, tensor_pairs
from aotidoctor.model.case import Case

FIND = Finder("AD-IN-018", "input_alias")


def run(case: Case) -> Observations:
    """One note per pair of tensors whose elements overlap in memory."""
    stored = [pair for pair in tensor_pairs(case) if pair.tensor.storage is not None and pair.tensor.numel]
    for first, second in combinations(stored, 2):
        a, b = first.tensor, second.tensor
        overlap = a.storage_offset < b.storage_offset + span(b) and b.storage_offset < a.storage_offset + span(a)
        if a.storage == b.storage and overlap:
            yield FIND.info(
                "overlap",
                f"{first.path}, {second.path}",
                observed="one storage, overlapping elements",
                expected="separate memory if the model writes to its inputs",
                facts={"path": second.path, "other": first.path},
            )


CHECK = leaf_check(FIND, run, facts=("input", "call", "launch"))
