"""Kernels as users write them, for ``make_packages``; ``models`` has the same by plain PyTorch."""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton
from triton.language.extra.cuda.libdevice import rsqrt


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):  # noqa: N803 - as Triton has it
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    tl.store(out_ptr + at, x * factor, mask=mask)


@triton_op("emu::scale", mutates_args={})
def scale(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(scale_kernel)[triton.cdiv(x.numel(), 64),](x, out, x.numel(), 3.0, BLOCK=64)
    return out


@triton.jit
def mean_square(x, n):
    """Of a row: a helper's "docstring"."""
    return tl.sum(x * x, axis=0) / n


@triton.jit
def rms_kernel(x_ptr, w_ptr, y_ptr, stride, n, OUT: tl.constexpr, BLOCK: tl.constexpr, num_stages: tl.constexpr):  # noqa: N803
    """A row each,
    and what a text that isn't in one line does."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    # fmt: off
    x = tl.load(x_ptr + row * stride + cols, mask=mask, \
                other=0.0)
    # fmt: on
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    y = x * rsqrt(mean_square(x, n) + 1e-6) * w
    tl.store(y_ptr + row * stride + cols, y.to(OUT), mask=mask)


@triton_op("emu::rms", mutates_args={})
def rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x, dtype=torch.float16)
    wrap_triton(rms_kernel)[x.shape[0],](
        x, w, y, x.stride(0), x.shape[1], OUT=tl.float16, BLOCK=triton.next_power_of_2(x.shape[1]), num_stages=2
    )
    return y


@triton.jit
def total_kernel(x_ptr, parts_ptr, out_ptr, count_ptr, n, BLOCK: tl.constexpr, PARTS: tl.constexpr):  # noqa: N803
    """The program that is the last one to be done adds up what all have made."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), axis=0))
    if tl.atomic_add(count_ptr, 1) == tl.num_programs(0) - 1:
        part = tl.arange(0, PARTS)
        parts = tl.load(parts_ptr + part, mask=part < tl.num_programs(0), other=0.0)
        tl.store(out_ptr, tl.sum(parts, axis=0))


@triton_op("emu::total", mutates_args={})
def total(x: torch.Tensor) -> torch.Tensor:
    parts, out = torch.empty(64, device=x.device), torch.empty(1, device=x.device)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    wrap_triton(total_kernel)[triton.cdiv(x.numel(), 64),](x, parts, out, count, x.numel(), BLOCK=64, PARTS=64)
    return out


@triton.jit
def halves_kernel(x_ptr, y_ptr, half, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(x_ptr + at, mask=at < n)
    second = tl.load(x_ptr + half + at, mask=at < n)
    tl.store(y_ptr + at, first * second, mask=at < n)


@triton_op("emu::halves", mutates_args={})
def halves(x: torch.Tensor) -> torch.Tensor:
    """It is handed the first half, and goes on into the second."""
    y = torch.empty(60, device=x.device)
    wrap_triton(halves_kernel)[1,](x[:60], y, 60, 60, BLOCK=64)
    return y


# By model: its static methods.
KERNELS = {"user_triton": {"scaled": scale}, "half_user": {"rms": rms, "total": total, "halves": halves}}
