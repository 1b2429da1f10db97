"""Two inputs share memory.

What it does
    Compares the storages and the element ranges of the tensors.

Why it matters
    It matters only if the model writes to one of them: the other then changes under the kernel that reads it. A run
    tells; here it is a note.

Example:
    args[0], args[1]: observed one storage, expected separate memory if the model writes to its inputs

When it is wrong
    Models that only read their inputs do not care.
"""

from __future__ import annotations

from itertools import combinations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.pairs import TensorPair, leaf_check, tensor_pairs
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.inputs import TensorDesc

FIND = Finder("AD-IN-018", "input_alias")


def run(case: Case) -> Findings:
    """One note per couple of tensors whose elements overlap in memory."""
    pairs = list(tensor_pairs(case))
    return [_finding(a, b) for a, b in combinations(pairs, 2) if _overlap(a.tensor, b.tensor)]


def _overlap(a: TensorDesc, b: TensorDesc) -> bool:
    if a.storage is None or a.storage != b.storage or a.numel == 0 or b.numel == 0:
        return False
    (a_first, a_last), (b_first, b_last) = _extent(a), _extent(b)
    return a_first <= b_last and b_first <= a_last


def _extent(tensor: TensorDesc) -> tuple[int, int]:
    """First and last element of the storage that the tensor can touch."""
    span = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride or (), strict=False))
    return tensor.storage_offset, tensor.storage_offset + span


def _finding(a: TensorPair, b: TensorPair) -> Evidence:
    return FIND.info(
        "overlap",
        f"{a.path}, {b.path}",
        observed="one storage, overlapping elements",
        expected="separate memory if the model writes to its inputs",
        facts={"path": b.path, "other": a.path},
    )


CHECK = leaf_check(FIND, run, facts=("input", "call", "launch"))
