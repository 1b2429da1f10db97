"""Outputs of a package against those of its reference, leaf by leaf, with all that is needed to judge them later.

A leaf *agrees* within the tolerance that was asked for, else within a few roundings of its dtype (``_CLOSE``, relative
to the element and to the median magnitude of the tensor). What does not is for the float64 run to judge; where there is
none, ``loosely`` tells whether it is at least within the tolerance that two correct programs may need.
"""

from __future__ import annotations

from typing import Any

from aotidoctor.model.tolerance import GRID, Tolerances
from aotidoctor.worker.compare import compare_leaf, wider
from aotidoctor.worker.describe import dense
from aotidoctor.worker.leaves import walk

# As torch.testing.assert_close has them.
_CLOSE = {"float64": 1e-7, "float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2}


def compare_outputs(ours: Any, theirs: Any, tolerances: Tolerances) -> dict[str, Any]:
    """``agrees``, ``same_structure``, ``missing``, ``extra``, ``containers`` and ``outputs``, one object per leaf."""
    left, right = dict(walk(ours, "result")), dict(walk(theirs, "result"))
    shared = [path for path in left if path in right]
    places = {path: index for index, path in enumerate(right)}
    leaves = [_leaf(path, left[path], right[path], tolerances.of(path, places[path])) for path in shared]
    missing, extra = sorted(right.keys() - left.keys()), sorted(left.keys() - right.keys())
    containers = [_containers(ours), _containers(theirs)]
    same = not missing and not extra and list(left) == list(right) and containers[0] == containers[1]
    return {
        "agrees": same and all(leaf["agrees"] for leaf in leaves),
        "same_structure": same,
        "containers": None if containers[0] == containers[1] else containers,
        "missing": missing,
        "extra": extra,
        "unused_tolerances": list(tolerances.unused(list(right))),
        "outputs": leaves,
    }


def settle(facts: dict[str, Any]) -> None:
    """Give each leaf its ``verdict``, from what the float64 run ``judged``, and the whole its ``agrees``."""
    for leaf in facts["outputs"]:
        if leaf["agrees"]:
            leaf["verdict"] = "agrees"
        elif leaf["what"] not in ("values", "nan"):
            leaf["verdict"] = leaf["what"]
        elif leaf.get("judged") in (None, "unknown") and leaf["loosely"] and not leaf["asked"]:
            leaf["verdict"] = "agrees"
        else:
            leaf["verdict"] = leaf.get("judged") or "unknown"
        leaf["agrees"] = leaf["verdict"] in ("agrees", "both-within", "reference-imprecise")
    facts["agrees"] = facts["same_structure"] and all(leaf["agrees"] for leaf in facts["outputs"])


def _leaf(path: str, ours: Any, theirs: Any, asked: tuple[float, float] | None) -> dict[str, Any]:
    import torch

    ours, theirs = _as_tensor(ours, theirs), _as_tensor(theirs, ours)
    loose = compare_leaf(path, ours, theirs)
    if loose["what"] in ("type", "shape") or not isinstance(theirs, torch.Tensor):
        return {**loose, "loosely": loose["agrees"], "asked": asked is not None}
    left, right = _flat(ours), _flat(theirs)
    rtol, atol = asked if asked is not None else _close(ours, theirs, right)
    needed = [[point, needed_atol(left, right, point)] for point in GRID]
    agrees = loose["what"] != "dtype" and needed_atol(left, right, rtol) <= atol
    return {
        **loose,
        "agrees": agrees,
        "what": None if agrees else loose["what"] or "values",
        "rtol": rtol,
        "atol": atol,
        "far": _far(left, right, rtol, atol),
        "loosely": loose["agrees"],
        "asked": asked is not None,
        "needed": needed,
    }


def needed_atol(left: Any, right: Any, rtol: float) -> float:
    """The smallest atol with which all elements agree at this rtol; inf where NaN or Inf stand elsewhere."""
    import torch

    same = (left == right) | (left.isnan() & right.isnan())
    if not bool((same | (left.isfinite() & right.isfinite())).all()):
        return float("inf")
    excess = torch.where(same, 0.0, (left - right).abs() - rtol * right.abs())
    return max(0.0, float(excess.max())) if excess.numel() else 0.0


def _far(left: Any, right: Any, rtol: float, atol: float) -> int:
    """How many elements are beyond the tolerance."""
    same = (left == right) | (left.isnan() & right.isnan())
    near = left.isfinite() & right.isfinite() & ((left - right).abs() <= atol + rtol * right.abs())
    return int((~(same | near)).sum())


def _close(ours: Any, theirs: Any, right: Any) -> tuple[float, float]:
    """The tolerance of the coarser dtype; none for integers."""
    relative = wider(_CLOSE, ours, theirs)
    size = right[right.isfinite() & (right != 0)].abs()
    return relative, relative * float(size.median()) if size.numel() else 0.0


def _flat(tensor: Any) -> Any:
    import torch

    tensor = dense(tensor).cpu()
    return (torch.view_as_real(tensor.to(torch.complex128)) if tensor.is_complex() else tensor.double()).reshape(-1)


def _as_tensor(value: Any, other: Any) -> Any:
    """A number as a tensor where the other side has a tensor without dims: packages return tensors only."""
    import torch

    if isinstance(value, bool | int | float) and isinstance(other, torch.Tensor) and other.dim() == 0:
        return torch.tensor(value, dtype=other.dtype)
    return value


def _containers(value: Any) -> str:
    """The types of lists, tuples and dicts around the leaves."""
    from torch.utils import _pytree as pytree

    return str(pytree.tree_structure(value)).replace("\n", "")
