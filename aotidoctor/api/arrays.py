"""NumPy arrays by their attributes: numpy is not imported here, as whoever has an array has imported it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Protocol, cast

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.readers.inputs.ndarrays import torch_dtype


class _DType(Protocol):
    str: str


class _Flat(Protocol):
    def tolist(self) -> list[float]: ...


class Array(Protocol):
    """What of ``numpy.ndarray`` is used here. ``strides`` are in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: _DType
    __array_interface__: dict[str, tuple[int, bool]]

    def ravel(self) -> _Flat:
        """The elements, row-major."""


def is_array(value: object) -> bool:
    """Whether it is a ``numpy.ndarray`` of a kind that a tensor can be made of."""
    if type(value).__name__ != "ndarray" or type(value).__module__ != "numpy":
        return False
    array = cast("Array", value)
    dtype = torch_dtype(array.dtype.str)
    if dtype is None or array.dtype.str.startswith(">"):
        return False
    return all(step >= 0 and step % ITEMSIZE[dtype] == 0 for step in array.strides)


class Tensor:
    """An array with the attributes of the tensor that ``torch.from_numpy`` makes of it; ``is_array`` must be true."""

    device = "cpu"
    layout = "strided"
    requires_grad = False
    is_quantized = False

    def __init__(self, value: object) -> None:
        self.array = cast("Array", value)
        self.dtype = torch_dtype(self.array.dtype.str) or ""
        self.shape = tuple(int(size) for size in self.array.shape)

    def stride(self) -> Sequence[int]:
        """In elements."""
        size = ITEMSIZE[self.dtype]
        return tuple(int(step) // size for step in self.array.strides)

    def storage_offset(self) -> int:
        """The tensor begins where its storage begins."""
        return 0

    def span(self) -> int:
        """Bytes from the first element to behind the last one."""
        if 0 in self.shape:
            return 0
        reach = sum((size - 1) * int(step) for size, step in zip(self.shape, self.array.strides, strict=True))
        return reach + ITEMSIZE[self.dtype]

    def untyped_storage(self) -> Tensor:
        """Itself: see ``data_ptr`` and ``nbytes``."""
        return self

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.array.__array_interface__["data"][0])

    def nbytes(self) -> int:
        """The size of the memory that the elements lie in."""
        return self.span()

    def memory(self) -> bytes:
        """What lies there, with what is between the elements."""
        return ctypes.string_at(self.data_ptr(), self.span()) if self.span() else b""

    def detach(self) -> Tensor:
        """Itself: an array has no gradient."""
        return self

    def flatten(self) -> _Flat:
        """The elements, row-major."""
        return self.array.ravel()
