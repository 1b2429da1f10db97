"""Accesses of a kernel as the quick way has them: where they go, and for which lanes, as graphs."""

from __future__ import annotations

from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.addresses.nodes import Grid, Node, Unsliceable
from aotidoctor.worker.emulation.addresses.operations import aligned


@record
class Ptr:
    """A pointer: the kernel's argument, and how many elements behind its beginning; ``rank`` of its block."""

    argument: str
    offset: Node


@record
class Access:
    """``what`` is ``load``, ``store``, ``atomic`` or ``assert``; of the last only ``mask`` is used: what must hold.

    ``line`` is the line of the kernel's text, ``order`` counts in the order of execution.
    """

    what: str
    line: int
    order: int
    argument: str = ""
    index: Node | None = None
    mask: Node | None = None
    message: str = ""

    def lanes(self, grid: Grid) -> tuple[Any, Any]:
        """Index and mask of every lane, of one shape. Raises what ``Node.array`` raises."""
        import numpy as np

        if self.index is None:
            raise Unsliceable("an access without an address")
        rank = max(self.index.rank, self.mask.rank if self.mask is not None else 0)
        index = aligned(self.index.array(grid), self.index.rank, rank)
        mask: Any = np.ones((1,) * index.ndim, dtype=bool)
        if self.mask is not None:
            mask = aligned(self.mask.array(grid), self.mask.rank, rank).astype(bool, copy=False)
        shape = np.broadcast_shapes(index.shape, mask.shape, (grid.count,) + (1,) * rank)
        return np.broadcast_to(index, shape).astype(np.int64, copy=False), np.broadcast_to(mask, shape)
