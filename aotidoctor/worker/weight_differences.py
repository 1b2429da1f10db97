"""How a constant of the package differs from the one that the reference has under its name.

``what`` is one of

- ``flipped-bit``: at most ``FEW`` elements differ, each in exactly one bit;
- ``few``: at most ``FEW`` elements differ otherwise;
- ``cast``: another dtype, and the reference's values cast to it are the package's;
- ``transposed``, ``reshaped``: the same values in another order or shape;
- ``values``: many elements differ; ``share`` is their part of all;
- ``dtype``, ``shape``: anything else of that kind.

Of the first few elements that differ, ``elements`` tells index, both values, and the bits that differ (0 is the least
significant).
"""

from __future__ import annotations

import ctypes
from typing import Any

from aotidoctor.model.dtypes import index_at
from aotidoctor.worker.describe import dense, describe, digest

FEW = 8
# Bits are looked at in integers of the same width.
_INTEGERS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def difference(name: str, ours: Any, theirs: Any) -> dict[str, Any]:
    """Facts of one pair: ``name``, ``equal``, ``what``, and what goes with it."""
    mine, other = describe(name, ours, values=False), describe(name, theirs, values=False)
    told = {"name": name, "equal": False, "dtype": mine["dtype"], "shape": mine["shape"]}
    if mine["dtype"] != other["dtype"]:
        what = "cast" if mine["shape"] == other["shape"] and _same(ours, theirs.to(ours.dtype)) else "dtype"
        return {**told, "what": what, "observed": mine["dtype"], "expected": other["dtype"]}
    if mine["shape"] != other["shape"]:
        return {
            **told,
            "what": _reordered(ours, theirs) or "shape",
            "observed": mine["shape"],
            "expected": other["shape"],
        }
    alike = _identical(ours, theirs)
    if digest(ours) == digest(theirs) if alike is None else alike:
        return {**told, "equal": True, "what": None}
    return {**told, **_values(ours, theirs)}


def _values(ours: Any, theirs: Any) -> dict[str, Any]:
    import torch

    left, right = dense(ours).cpu().contiguous(), dense(theirs).cpu().contiguous()
    if left.is_complex():
        left, right = torch.view_as_real(left), torch.view_as_real(right)
    one, other = _bits(left), _bits(right)
    # -0.0 and another NaN have other bits and the same value.
    alike = (left == right) | (torch.isnan(left) & torch.isnan(right))
    places = ((one != other) & ~alike).reshape(-1).nonzero().reshape(-1)
    if not places.numel():
        return {"equal": True, "what": None}
    apart = (left.double() - right.double()).abs()
    facts: dict[str, Any] = {
        "differing": int(places.numel()),
        "numel": int(left.numel()),
        "share": int(places.numel()) / max(1, int(left.numel())),
        "max_abs_diff": float(apart.nan_to_num(nan=float("inf")).max()),
        "elements": [_element(left, right, one, other, int(at)) for at in places[:FEW]],
    }
    reordered = _reordered(left, right)
    if reordered is not None:
        return {"what": reordered, **facts}
    few = places.numel() <= FEW and (places.numel() == 1 or places.numel() * 2 <= left.numel())
    single = few and all(len(element["bits"]) == 1 for element in facts["elements"])
    return {"what": "flipped-bit" if single else "few" if few else "values", **facts}


def _element(left: Any, right: Any, one: Any, other: Any, at: int) -> dict[str, Any]:
    width = one.element_size() * 8
    apart = (int(one.reshape(-1)[at]) ^ int(other.reshape(-1)[at])) & ((1 << width) - 1)
    return {
        "index": index_at(at, left.shape),
        "observed": left.reshape(-1)[at].item(),
        "expected": right.reshape(-1)[at].item(),
        "bits": [bit for bit in range(width) if apart >> bit & 1],
    }


def _reordered(ours: Any, theirs: Any) -> str | None:
    """``transposed`` or ``reshaped`` where the values are the same in another order."""
    if ours.numel() != theirs.numel() or ours.numel() < 2:
        return None
    if ours.dim() == theirs.dim() == 2 and _same(ours, theirs.t()):
        return "transposed"
    if ours.shape != theirs.shape and _same(ours.reshape(-1), theirs.reshape(-1)):
        return "reshaped"
    return None


def _identical(ours: Any, theirs: Any) -> bool | None:
    """Whether two plain tensors of one dtype and shape have the same bytes; None where that is not quickly told."""
    import torch

    for tensor in (ours, theirs):
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu"
        if not plain or tensor.is_quantized or tensor.layout != torch.strided or not tensor.is_contiguous():
            return None
        if tensor.is_conj() or tensor.is_neg():
            return None
    size = ours.numel() * ours.element_size()
    compare = ctypes.CDLL(None).memcmp
    compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    return bool(size == 0 or compare(ours.data_ptr(), theirs.data_ptr(), size) == 0)


def _same(ours: Any, theirs: Any) -> bool:
    return list(ours.shape) == list(theirs.shape) and digest(ours) == digest(theirs) is not None


def _bits(tensor: Any) -> Any:
    import torch

    return tensor.view(getattr(torch, _INTEGERS[tensor.element_size()]))
