"""Describe tensors as JSON: what they are, which values they hold, whose memory they share."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable
from typing import Any


def describe(path: str, tensor: Any, *, values: bool) -> dict[str, Any]:
    """``path``, ``dtype``, ``shape``, ``stride``, ``device``, ``numel``; with ``values`` also those of ``stats``.

    Shape and stride are None where the layout has none (nested, sparse).
    """
    facts: dict[str, Any] = {
        "path": path,
        "dtype": dtype_name(tensor),
        "shape": _ints(lambda: tensor.shape),
        "stride": _ints(tensor.stride),
        "device": str(tensor.device),
        "numel": int(tensor.numel()),
    }
    return facts | (stats(tensor) if values else {})


def dtype_name(tensor: Any) -> str:
    """``float32`` of a float32 tensor."""
    return short_name(tensor.dtype)


def short_name(dtype: Any) -> str:
    """``float32`` of ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def stats(tensor: Any) -> dict[str, Any]:
    """``nan`` and ``inf`` counts, and ``min``, ``max``, ``mean`` over the finite values (None when there are none).

    Counts and bounds are None for what has no values to look at (meta, nested).
    """
    unknown = dict.fromkeys(("nan", "inf", "min", "max", "mean"))
    try:
        # On the host: a device whose kernels are under suspicion, or whose memory is short, is not asked to count.
        return _stats(dense(tensor).cpu()) if tensor.device.type != "meta" else unknown
    except (RuntimeError, NotImplementedError, TypeError):
        return unknown


def dense(tensor: Any) -> Any:
    """The values as a plain strided tensor: dequantised, densified, lazy bits resolved, no gradient."""
    import torch

    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg()


def _stats(tensor: Any) -> dict[str, Any]:
    import torch

    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.is_floating_point() and tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.float()
    nan = inf = 0
    if tensor.is_floating_point():
        finite = torch.isfinite(tensor)
        bad = tensor.numel() - int(finite.sum())
        if bad:
            nan = int(torch.isnan(tensor).sum())
            inf = bad - nan
            tensor = tensor[finite]
    elif tensor.dtype is torch.bool or not tensor.dtype.is_signed:
        tensor = tensor.to(torch.int64)
    if tensor.numel() == 0:
        return {"nan": nan, "inf": inf, "min": None, "max": None, "mean": None}
    low, high = torch.aminmax(tensor)
    mean = torch.mean(tensor, dtype=torch.float64) if tensor.is_floating_point() else tensor.double().mean()
    return {"nan": nan, "inf": inf, "min": low.item(), "max": high.item(), "mean": mean.item()}


def digest(tensor: Any) -> str | None:
    """SHA-256 of the values' bytes in index order; None for a tensor without any (meta, nested, opaque)."""
    import torch

    try:
        flat = tensor.detach()
        if flat.device.type == "meta":
            return None
        flat = flat.int_repr() if flat.is_quantized else dense(flat)
        flat = flat.cpu().contiguous().reshape(-1)
        size = flat.numel() * flat.element_size()
        if size == 0:
            return hashlib.sha256(b"").hexdigest()
        data = (ctypes.c_char * size).from_address(flat.data_ptr())
        return hashlib.sha256(data).hexdigest()
    except (RuntimeError, NotImplementedError, TypeError, torch.OutOfMemoryError):
        return None


def storage(tensor: Any) -> int:
    """Address of the memory that holds the values; 0 when there is none."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0


def nbytes(tensor: Any) -> int:
    """Bytes of the values; 0 for a layout that cannot tell."""
    try:
        return int(tensor.numel() * tensor.element_size())
    except (RuntimeError, NotImplementedError):
        return 0


def _ints(read: Callable[[], Iterable[Any]]) -> list[int] | None:
    try:
        return [int(number) for number in read()]
    except (RuntimeError, NotImplementedError):
        return None
