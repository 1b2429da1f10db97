"""What is told of lanes that go astray: where the first of them is, and how many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.found import Found
from aotidoctor.worker.emulation.lanes.pointers import Pointer


@record
class LaneFindings:
    """Adds findings to ``found``; ``place`` tells line, program and lane of the lane at an index of a block.

    ``where`` and ``wrong`` are arrays of bool in the shape of a block, ``at`` are byte offsets in the allocation.
    """

    found: Found
    place: Callable[[tuple[int, ...], tuple[int, ...]], dict[str, Any]]

    def refuse(self, pointer: Pointer, at: Any, wrong: Any, access: str, size: int) -> None:
        """Lanes that go outside, to an odd address, or to memory that was freed."""
        tensor = pointer.tensor
        if tensor is None:
            return
        index = first(wrong)
        offset = int(at[index]) - tensor.start
        low, high = pointer.bounds
        outside = not low <= int(at[index]) <= high - size
        kind = "out-of-bounds" if outside else "misaligned"
        if not tensor.storage.live:
            kind = "use-after-free"
        self.found.add(
            kind,
            access=access,
            argument=pointer.name,
            buffer=tensor.name,
            allocation=tensor.storage.name,
            itemsize=size,
            offset=offset // size,
            offset_bytes=offset,
            extent=tensor.extent // size,
            extent_bytes=tensor.extent,
            dtype=tensor.dtype,
            sizes=list(tensor.sizes),
            strides=list(tensor.strides),
            count=int(wrong.sum()),
            **self.place(index, wrong.shape),
        )

    def refuse_all(self, mask: Any, access: str, pointer: Pointer | None, size: int) -> None:
        """All lanes of an access through no pointer of the launch."""
        index = first(mask)
        self.found.add(
            "out-of-bounds",
            access=access,
            argument=pointer.name if pointer is not None else None,
            buffer=None,
            itemsize=size,
            count=int(mask.sum()),
            null=True,
            **self.place(index, mask.shape),
        )

    def tell(self, kind: str, pointer: Pointer, at: Any, where: Any, **facts: Any) -> None:
        """Any other finding about lanes inside."""
        index = first(where)
        tensor = pointer.tensor
        if tensor is None:
            return
        self.found.add(
            kind,
            argument=pointer.name,
            buffer=tensor.name,
            allocation=tensor.storage.name,
            itemsize=pointer.itemsize,
            offset=(int(at[index]) - tensor.start) // pointer.itemsize,
            extent=tensor.extent // pointer.itemsize,
            count=int(where.sum()),
            **facts,
            **self.place(index, where.shape),
        )


def first(where: Any) -> tuple[int, ...]:
    """The index of the first lane that is marked."""
    import numpy as np

    return tuple(int(one) for one in np.unravel_index(int(where.argmax()), where.shape))
