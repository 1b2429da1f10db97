"""Compare two results leaf by leaf: structure, dtype, shape, where the NaNs are, and how far the values are apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aotidoctor.model.answers.called import Compared
from aotidoctor.worker.describe import dense, dtype_name, short_name
from aotidoctor.worker.leaves import walk

# Relative to the value, and to the largest value of the tensor. They allow for another order of summation, which moves
# results of a long reduction by far more than one rounding.
_TOLERANCE = {"float64": 1e-7, "float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}
# A value larger than this many times the median does not count for that: it is a mask (-1e9), and would hide the rest.
_OUTLIER = 1000.0


def compare(ours: Any, theirs: Any) -> dict[str, Any]:
    """``agrees``, ``same_structure`` and ``outputs``, one object per leaf; ``ours`` is the package's result."""
    left, right = dict(walk(ours, "result")), dict(walk(theirs, "result"))
    shared = [path for path in left if path in right]
    leaves = [compare_leaf(path, left[path], right[path]) for path in shared]
    missing, extra = sorted(right.keys() - left.keys()), sorted(left.keys() - right.keys())
    same = not missing and not extra and list(left) == list(right)
    return {
        "agrees": same and all(leaf["agrees"] for leaf in leaves),
        "same_structure": same,
        "missing": missing,
        "extra": extra,
        "outputs": leaves,
    }


def compared_leaf(leaf: dict[str, Any]) -> Compared:
    """What the parent reads of one leaf."""
    return Compared(path=leaf["path"], agrees=leaf["agrees"], what=leaf["what"], max_abs_diff=leaf.get("max_abs_diff"))


def compare_leaf(path: str, ours: Any, theirs: Any) -> dict[str, Any]:
    """One leaf: ``agrees``, ``what`` differs first (type, dtype, shape, nan, values), and the measure of it."""
    import torch

    if not (isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor)):
        same = type(ours) is type(theirs) and repr(ours) == repr(theirs)
        return {"path": path, "agrees": same, "what": None if same else "type"}
    facts: dict[str, Any] = {
        "path": path,
        "dtype": [dtype_name(ours), dtype_name(theirs)],
        "shape": [list(ours.shape), list(theirs.shape)],
    }
    if ours.shape != theirs.shape:
        return facts | {"agrees": False, "what": "shape"}
    values = _values(dense(ours).cpu(), dense(theirs).cpu())
    if ours.dtype != theirs.dtype:
        return facts | values | {"agrees": False, "what": "dtype"}
    return facts | values


def _values(ours: Any, theirs: Any) -> dict[str, Any]:
    import torch

    relative = wider(_TOLERANCE, ours, theirs)
    if ours.is_complex() or theirs.is_complex():
        ours, theirs = torch.view_as_real(ours.to(torch.complex128)), torch.view_as_real(theirs.to(torch.complex128))
    left, right = ours.double(), theirs.double()
    nan_left, nan_right = torch.isnan(left), torch.isnan(right)
    plain = ~(nan_left | nan_right) & (left != right)
    difference = torch.where(plain, (left - right).abs(), torch.zeros_like(left)).nan_to_num(nan=torch.inf)
    absolute = relative * _scale(right)
    far = difference > absolute + relative * torch.where(torch.isfinite(right), right, 0).abs()
    nan_same = bool((nan_left == nan_right).all())
    agrees = nan_same and not bool(far.any())
    return {
        "agrees": agrees,
        "what": None if agrees else ("values" if nan_same else "nan"),
        "rtol": relative,
        "atol": absolute,
        "numel": left.numel(),
        "far": int(far.sum()),
        "max_abs_diff": float(difference.max()) if difference.numel() else 0.0,
        "max_rel_diff": _max_rel(difference, right),
        "nan": [int(nan_left.sum()), int(nan_right.sum())],
        "inf": [int(torch.isinf(left).sum()), int(torch.isinf(right).sum())],
    }


def _scale(values: Any) -> float:
    """The largest magnitude, outliers left out."""
    import torch

    sizes = values[torch.isfinite(values) & (values != 0)].abs()
    return min(float(sizes.max()), _OUTLIER * float(sizes.median())) if sizes.numel() else 0.0


def _max_rel(difference: Any, right: Any) -> float:
    usable = (right != 0) & right.isfinite()
    return float((difference[usable] / right[usable].abs()).max()) if bool(usable.any()) else 0.0


def wider(tolerances: Mapping[str, float], ours: Any, theirs: Any) -> float:
    """The wider of the two dtypes' tolerances, of complex numbers that of their parts; 0 for integers."""
    dtypes = (ours.dtype.to_real(), theirs.dtype.to_real())
    return max(tolerances.get(short_name(one), 0.1 if one.is_floating_point else 0.0) for one in dtypes)
