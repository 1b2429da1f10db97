"""What a package does to its inputs and shares with them, against what its reference does.

``mutation``: one object per input that either of the two wrote to: ``path``, ``package``, ``reference`` (did it),
``agrees`` (both did, to the same values), ``max_abs_diff``. ``alias``: one object per output whose memory is shared
otherwise: ``path``, ``package`` and ``reference`` (names of what it shares memory with).
"""

from __future__ import annotations

from typing import Any

from aotidoctor.worker.call import Call
from aotidoctor.worker.compare import compare_leaf
from aotidoctor.worker.describe import digest, storage
from aotidoctor.worker.leaves import result_tensors


def compare_mutation(before: list[str | None], ours: Call, theirs: Call) -> list[dict[str, Any]]:
    """``before`` are the digests of the inputs; both calls have been made, on inputs of their own."""
    found = []
    for old, (path, mine), (_, other) in zip(before, ours.tensors(), theirs.tensors(), strict=True):
        now, then = digest(mine), digest(other)
        if old is None or now is None or then is None or old == now == then:
            continue
        facts: dict[str, Any] = {"path": path, "package": old != now, "reference": old != then}
        compared = compare_leaf(path, mine, other)
        facts["agrees"] = facts["package"] == facts["reference"] and compared["agrees"]
        found.append(facts | {"max_abs_diff": compared.get("max_abs_diff")})
    return found


def compare_aliases(ours: Any, our_call: Call, theirs: Any, their_call: Call) -> list[dict[str, Any]]:
    """Only outputs that share other memory than their counterpart."""
    mine, other = _partners(ours, our_call), _partners(theirs, their_call)
    return [
        {"path": path, "package": mine[path], "reference": other[path]}
        for path in mine
        if path in other and mine[path] != other[path]
    ]


def _partners(result: Any, call: Call) -> dict[str, list[str]]:
    leaves = result_tensors(result)
    around = [(path, storage(tensor)) for path, tensor in [*call.tensors(), *leaves]]
    return {
        path: [name for name, address in around if name != path and address and address == storage(tensor)]
        for path, tensor in leaves
    }
