"""What the values of a small tensor are like: range, NaN, Inf, zeros. No numpy: plain arrays and built-in functions."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence

from aotidoctor.model.dtypes import ITEMSIZE, contiguous_stride
from aotidoctor.model.inputs import Elements, ValueStats

MAX_BYTES = 256 << 10
# What is read when it is asked for, in bytes from the first to the last element.
MAX_SPAN = 16 << 20

_CODES = {
    "bool": "B",
    "uint8": "B",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}
_PARTS = {"complex64": "float32", "complex128": "float64", "complex32": "float16"}


def read_stats(
    dtype: str,
    data: memoryview,
    *,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    big_endian: bool = False,
    negated: bool = False,
) -> ValueStats | None:
    """The statistics of a view of the storage ``data``; None when it is large or its dtype is not read.

    Strides and offset in elements. The view must lie inside the storage.
    """
    count = math.prod(shape)
    if dtype not in ITEMSIZE or count * ITEMSIZE[dtype] > MAX_BYTES:
        return None
    if count == 0:
        return summarise([])
    part = _PARTS.get(dtype)
    if part is not None:
        pairs = read_values(
            part,
            data,
            shape=(*shape, 2),
            stride=(*(2 * step for step in stride), 1),
            offset=2 * offset,
            big_endian=big_endian,
        )
        return None if pairs is None else summarise_complex(pairs)
    values = read_values(dtype, data, shape=shape, stride=stride, offset=offset, big_endian=big_endian)
    if values is None:
        return None
    return summarise([-value for value in values] if negated else values)


def read_later(
    dtype: str,
    data: memoryview,
    *,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    big_endian: bool = False,
    negated: bool = False,
) -> Elements:
    """A function that reads the values of the view when it is called; None for what is large or not read."""

    def read() -> Sequence[int] | Sequence[float] | None:
        span = 1 + sum((length - 1) * step for length, step in zip(shape, stride, strict=True))
        if dtype not in ITEMSIZE or span * ITEMSIZE[dtype] > MAX_SPAN or math.prod(shape) > MAX_SPAN:
            return None
        if 0 in shape:
            return ()
        values = read_values(
            dtype, data, shape=shape, stride=stride, offset=offset, big_endian=big_endian, limit=MAX_SPAN
        )
        return [-value for value in values] if negated and values is not None else values

    return read


def read_values(
    dtype: str,
    data: memoryview,
    *,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    big_endian: bool,
    limit: int = 16 * MAX_BYTES,
) -> Sequence[int] | Sequence[float] | None:
    """The values row-major; None for a dtype that is not read, or for values strewn over more than ``limit`` bytes."""
    size = ITEMSIZE[dtype]
    span = 1 + sum((length - 1) * step for length, step in zip(shape, stride, strict=True))
    if span * size > limit:
        return None
    raw = bytes(data[offset * size : (offset + span) * size])
    flat = _decode(dtype, raw, big_endian)
    if flat is None or stride == contiguous_stride(shape) or len(shape) == 0:
        return flat
    return [flat[index] for index in _indices(shape, stride)]


def _decode(dtype: str, raw: bytes, big_endian: bool) -> Sequence[int] | Sequence[float] | None:
    if dtype == "float16":
        return struct.unpack(f"{'>' if big_endian else '<'}{len(raw) // 2}e", raw)
    if dtype == "bfloat16":
        raw, dtype = _widen(raw, big_endian), "float32"
        big_endian = False
    code = _CODES.get(dtype)
    if code is None:
        return None
    return struct.unpack(f"{'>' if big_endian else '<'}{len(raw) // ITEMSIZE[dtype]}{code}", raw)


def _widen(raw: bytes, big_endian: bool) -> bytes:
    """A bfloat16 is the upper half of a float32: put zeros below it."""
    low, high = (1, 0) if big_endian else (0, 1)
    wide = bytearray(2 * len(raw))
    wide[2::4] = raw[low::2]
    wide[3::4] = raw[high::2]
    return bytes(wide)


def _indices(shape: tuple[int, ...], stride: tuple[int, ...]) -> Iterator[int]:
    positions = [0]
    for length, step in zip(shape, stride, strict=True):
        positions = [start + index * step for start in positions for index in range(length)]
    return iter(positions)


def summarise(values: Sequence[int] | Sequence[float]) -> ValueStats:
    """The statistics of a flat sequence of numbers."""
    if not values:
        return ValueStats(low=None, high=None, nan=0, inf=0, zeros=0)
    zeros = values.count(0)
    low, high = min(values), max(values)
    if isinstance(low, int) or math.isfinite(low + high + sum(values)):
        binary = zeros + values.count(1) == len(values)
        return ValueStats(low=low, high=high, nan=0, inf=0, zeros=zeros, all_zero_or_one=binary)
    numbers = [value for value in values if not math.isnan(value)]
    first = next((index for index, value in enumerate(values) if not math.isfinite(value)), None)
    return ValueStats(
        low=min(numbers, default=None),
        high=max(numbers, default=None),
        nan=len(values) - len(numbers),
        inf=sum(map(math.isinf, numbers)),
        zeros=zeros,
        first_nonfinite=first,
    )


def summarise_complex(parts: Sequence[int] | Sequence[float]) -> ValueStats:
    """The statistics of complex numbers given as real and imaginary parts in turn; they have no range."""
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    nan = [math.isnan(real) or math.isnan(imaginary) for real, imaginary in pairs]
    inf = [math.isinf(real) or math.isinf(imaginary) for real, imaginary in pairs]
    first = next((index for index in range(len(pairs)) if nan[index] or inf[index]), None)
    return ValueStats(
        low=None,
        high=None,
        nan=sum(nan),
        inf=sum(inf),
        zeros=sum(real == 0 and imaginary == 0 for real, imaginary in pairs),
        first_nonfinite=first,
    )
