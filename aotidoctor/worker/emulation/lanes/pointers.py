"""Pointers that are made up: that of argument ``k`` begins at ``k << 52``.

An address tells its argument and, however far it strays, is never followed into real memory.
"""

from __future__ import annotations

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.storage import Tensor

_SPAN = 52
_MIDDLE = 1 << (_SPAN - 1)


@record
class Pointer:
    """An argument that is a pointer: ``name`` is the kernel's, ``tensor`` the wrapper's, ``itemsize`` of its type.

    ``whole``: it may go anywhere in the allocation, as on a GPU, and not in the tensor alone.
    """

    name: str
    number: int
    tensor: Tensor | None
    itemsize: int
    whole: bool = False

    @property
    def bounds(self) -> tuple[int, int]:
        """The byte offsets in the allocation where it may go: the first, and the one behind the last."""
        if self.tensor is None:
            return 0, 0
        if self.whole:
            return 0, self.tensor.storage.size
        return self.tensor.start, self.tensor.start + self.tensor.extent

    @property
    def origin(self) -> int:
        """The made-up address of the first byte of the allocation that it points into."""
        return (self.number << _SPAN) + _MIDDLE

    @property
    def address(self) -> int:
        """The made-up address of its first element; 0 for a null pointer."""
        return 0 if self.tensor is None else self.origin + self.tensor.start


def argument_of(address: int) -> int:
    """The number of the pointer that an address was made of."""
    return address >> _SPAN
