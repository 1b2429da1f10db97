"""Tensors from the leaves of a JSON inputs document. The same document gives the same tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from aotidoctor.model.dtypes import contiguous_stride
from aotidoctor.model.inputs_json import TensorSpec
from aotidoctor.worker.safe_load import placed


def make_tensor(spec: TensorSpec, notes: list[str]) -> Any:
    """The tensor of a JSON leaf: its values, or values from its seed; then its strides and its device."""
    import torch

    dtype = getattr(torch, spec.dtype)
    values = _given(spec, dtype) if spec.data is not None else _filled(spec, dtype)
    stride = spec.stride
    if stride is not None and stride != contiguous_stride(spec.shape):
        span = 0 if 0 in spec.shape else 1 + sum(_reach(spec.shape, stride))
        # Strides that skip elements leave gaps; zeros make them the same on every run.
        strided = torch.zeros(span, dtype=dtype).as_strided(spec.shape, stride)
        strided.copy_(values) if 0 not in stride else strided.fill_(values.flatten()[0] if values.numel() else 0)
        values = strided
    return _on_device(values, spec.device, notes)


def _reach(shape: tuple[int, ...], stride: tuple[int, ...]) -> Iterator[int]:
    return ((size - 1) * step for size, step in zip(shape, stride, strict=True))


def _on_device(tensor: Any, device: str, notes: list[str]) -> Any:
    if device == "meta":
        return tensor.to("meta")
    if device == "cpu" or placed(tensor, device, notes) is not None:
        return tensor
    return tensor.to(device)


def _given(spec: TensorSpec, dtype: Any) -> Any:
    import torch

    if dtype.is_complex or dtype.is_floating_point:
        return torch.tensor(spec.data, dtype=torch.float64).to(dtype).reshape(spec.shape)
    if spec.dtype == "bool":
        return torch.tensor([bool(value) for value in spec.data or ()], dtype=dtype).reshape(spec.shape)
    return torch.tensor([int(value) for value in spec.data or ()], dtype=dtype).reshape(spec.shape)


def _filled(spec: TensorSpec, dtype: Any) -> Any:
    """Normal, or even between the bounds; integers 0 or 1 where no bounds are given; booleans random."""
    import torch

    generator = torch.Generator().manual_seed(spec.seed)
    if dtype.is_floating_point or dtype.is_complex:
        if spec.low is None and spec.high is None:
            wide = torch.complex64 if dtype.is_complex else torch.float32
            return torch.randn(spec.shape, generator=generator, dtype=wide).to(dtype)
        low, high = spec.low or 0.0, 1.0 if spec.high is None else spec.high
        return (torch.rand(spec.shape, generator=generator) * (high - low) + low).to(dtype)
    low, high = math.ceil(spec.low or 0), math.floor(1 if spec.high is None else spec.high)
    return torch.randint(low, max(low, high) + 1, spec.shape, generator=generator).to(dtype)
