"""Tensors from the leaves of a JSON inputs document. The same document gives the same tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from aotidoctor.model.dtypes import contiguous_stride
from aotidoctor.model.inputs_json import TensorSpec
from aotidoctor.worker.safe_load import placed


def make_tensor(spec: TensorSpec) -> Any:
    """The tensor of a JSON leaf: its values, or values from its seed; then its strides and its device."""
    import torch

    dtype = getattr(torch, spec.dtype)
    values = _given(spec, dtype) if spec.data is not None else _filled(spec, dtype)
    stride = spec.stride
    if stride is not None and stride != contiguous_stride(spec.shape):
        values = _strided(values, spec.shape, stride)
    return _on_device(values, spec.device)


def _strided(values: Any, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """The values with other strides; along a dim of stride 0 the first ones, since all elements there are one."""
    import torch

    for dim, step in enumerate(stride):
        if step == 0 and shape[dim] > 1:
            values = values.narrow(dim, 0, 1)
    span = 0 if 0 in shape else 1 + sum(_reach(shape, stride))
    # Strides that skip elements leave gaps; zeros make them the same on every run.
    memory = torch.zeros(span, dtype=values.dtype)
    memory.as_strided(values.shape, stride).copy_(values)
    return memory.as_strided(shape, stride)


def _reach(shape: tuple[int, ...], stride: tuple[int, ...]) -> Iterator[int]:
    return ((size - 1) * step for size, step in zip(shape, stride, strict=True))


def _on_device(tensor: Any, device: str) -> Any:
    if device == "meta":
        return tensor.to("meta")
    if device == "cpu" or placed(tensor, device) is not None:
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
