"""What stands for device memory: allocations with a note of which elements were written, and tensors over them."""

from __future__ import annotations

from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.describe import dtype_name


class Storage:
    """One allocation.

    ``unit`` is the element size in bytes that ``written`` counts in; ``written`` is None where all of it was, else one
    flag an element. ``known`` is False once something that could not be carried out may have written to it.
    """

    def __init__(self, name: str, size: int, unit: int, *, written: bool) -> None:
        import numpy as np
        import torch

        self.name = name
        self.size = size
        self.unit = max(unit, 1)
        # Room at the end, so that it can be looked at as elements of any size.
        self.tensor = torch.zeros(-(-size // 16) * 16 + 16, dtype=torch.uint8)
        self.bytes = self.tensor.numpy()
        self.written: Any = None if written else np.zeros(self.cells, dtype=bool)
        self.live = True
        self.known = True

    @property
    def cells(self) -> int:
        """How many units it has."""
        return -(-self.size // self.unit)

    def elements(self, dtype: Any) -> Any:
        """The bytes as a flat array of ``dtype`` (of NumPy)."""
        return self.bytes.view(dtype)

    def all_written(self) -> None:
        """Everything in it has a value now."""
        self.written = None

    def unwritten(self, at: Any) -> Any:
        """Which of the byte offsets ``at`` nothing has written to; None where all of it was written, or is unknown."""
        return None if self.written is None or not self.known else ~self.written[at // self.unit]

    def mark(self, at: Any, size: int) -> None:
        """Elements of ``size`` bytes at the byte offsets ``at`` were written."""
        if self.written is None:
            return
        for step in range(0, size, self.unit):
            self.written[(at + step) // self.unit] = True


@record
class Tensor:
    """A tensor of the wrapper: ``name`` is the wrapper's; sizes, strides and ``offset`` count elements."""

    name: str
    storage: Storage
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        import torch

        return int(getattr(torch, self.dtype).itemsize)

    @property
    def start(self) -> int:
        """The byte offset of its first element in the allocation."""
        return self.offset * self.itemsize

    @property
    def extent(self) -> int:
        """Bytes from its first to the end of its last element."""
        return _reach(self.sizes, self.strides) * self.itemsize

    def torch(self) -> Any:
        """The same as a tensor of torch, on the same memory."""
        import torch

        empty = torch.empty(0, dtype=getattr(torch, self.dtype))
        return empty.set_(self.storage.tensor.untyped_storage(), self.offset, self.sizes, self.strides)

    def has_unwritten(self) -> int:
        """How many of its elements nothing has written to."""
        if self.storage.written is None or not self.storage.known or 0 in self.sizes:
            return 0
        if self.storage.written.all():
            self.storage.all_written()
            return 0
        at = self._places()
        return int((~self.storage.written[at * self.itemsize // self.storage.unit]).sum())

    def mark(self) -> None:
        """Every element of it has a value now."""
        if self.storage.written is not None and 0 not in self.sizes:
            self.storage.mark(self._places() * self.itemsize, self.itemsize)

    def _places(self) -> Any:
        import numpy as np

        at = np.array([self.offset], dtype=np.int64)
        for size, step in zip(self.sizes, self.strides, strict=True):
            at = (at[:, None] + np.arange(size, dtype=np.int64) * step).reshape(-1)
        return at


def of_torch(name: str, tensor: Any) -> Tensor:
    """A copy of ``tensor`` in an allocation of its own that ends with its last element."""
    made = _allocated(name, dtype_name(tensor), tuple(tensor.shape), tuple(tensor.stride()), written=True)
    if 0 not in made.sizes:
        made.torch().copy_(tensor.detach())
    return made


def empty(name: str, dtype: str, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """A fresh allocation that nothing was written to."""
    return _allocated(name, dtype, sizes, strides, written=False)


def _allocated(name: str, dtype: str, sizes: tuple[int, ...], strides: tuple[int, ...], *, written: bool) -> Tensor:
    import torch

    itemsize = getattr(torch, dtype).itemsize
    storage = Storage(name, _reach(sizes, strides) * itemsize, itemsize, written=written)
    return Tensor(name=name, storage=storage, dtype=dtype, sizes=sizes, strides=strides)


def _reach(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last, with those between."""
    return 0 if 0 in sizes else sum((size - 1) * step for size, step in zip(sizes, strides, strict=True)) + 1
