"""What the values of a small tensor are like: range, NaN, Inf, zeros. No numpy: plain arrays and built-in functions."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.dtypes import ITEMSIZE, contiguous_stride
from aotidoctor.model.inputs import TensorDesc, ValueStats
from aotidoctor.model.record import record

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
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
_PARTS = {"complex64": "float32", "complex128": "float64", "complex32": "float16"}


@record
class View:
    """Elements of the storage ``data``, inside of which they must lie; strides and offset in elements.

    ``negated``: the values are those stored with the other sign.
    """

    dtype: str
    data: memoryview
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    big_endian: bool = False
    negated: bool = False

    def stats(self) -> ValueStats | None:
        """Their statistics; None where they are many or of a dtype that is not read."""
        count = math.prod(self.shape)
        if self.dtype not in ITEMSIZE or count * ITEMSIZE[self.dtype] > MAX_BYTES:
            return None
        if count == 0:
            return summarise([])
        part = _PARTS.get(self.dtype)
        if part is not None:
            stride = (*(2 * step for step in self.stride), 1)
            pairs = replace(
                self, dtype=part, shape=(*self.shape, 2), stride=stride, offset=2 * self.offset, negated=False
            )
            values = pairs.values()
            return None if values is None else summarise_complex(values)
        values = self.values()
        return None if values is None else summarise(values)

    def elements(self) -> Sequence[int] | Sequence[float] | None:
        """The values, to be read when they are needed; None for what is large or not read."""
        if (
            self.dtype not in ITEMSIZE
            or self._span * ITEMSIZE[self.dtype] > MAX_SPAN
            or math.prod(self.shape) > MAX_SPAN
        ):
            return None
        return () if 0 in self.shape else self.values(MAX_SPAN)

    def values(self, limit: int = 16 * MAX_BYTES) -> Sequence[int] | Sequence[float] | None:
        """Row-major; None for a dtype that is not read, or where they are strewn over more than ``limit`` bytes."""
        size = ITEMSIZE[self.dtype]
        if self._span * size > limit:
            return None
        raw = bytes(self.data[self.offset * size : (self.offset + self._span) * size])
        flat = decode(self.dtype, raw, big_endian=self.big_endian)
        if flat is not None and self.stride != contiguous_stride(self.shape) and self.shape:
            flat = [flat[index] for index in _indices(self.shape, self.stride)]
        return [-value for value in flat] if flat is not None and self.negated else flat

    @property
    def _span(self) -> int:
        """Elements from the first to the last."""
        return 1 + sum((length - 1) * step for length, step in zip(self.shape, self.stride, strict=True))


def described(view: View, storage: str) -> TensorDesc:
    """The tensor that ``view`` is all of, with a storage of its own."""
    return TensorDesc(
        dtype=view.dtype,
        shape=view.shape,
        stride=view.stride,
        storage=storage,
        storage_nbytes=view.data.nbytes,
        stats=view.stats(),
        elements=view.elements,
    )


def decode(dtype: str, raw: bytes, *, big_endian: bool = False) -> Sequence[int] | Sequence[float] | None:
    """The numbers that the bytes are, 0 and 1 for booleans; None for a dtype that is not read."""
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


def _indices(shape: tuple[int, ...], stride: tuple[int, ...]) -> list[int]:
    positions = [0]
    for length, step in zip(shape, stride, strict=True):
        positions = [start + index * step for start in positions for index in range(length)]
    return positions


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
