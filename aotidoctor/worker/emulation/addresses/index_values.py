"""Values that an address, a mask or an assertion is made of: the loads of the quick way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.addresses.accesses import Access
from aotidoctor.worker.emulation.addresses.forms import bounds_of
from aotidoctor.worker.emulation.addresses.nodes import Grid, Node, Unsliceable
from aotidoctor.worker.emulation.addresses.operations import aligned
from aotidoctor.worker.emulation.dtypes import NUMPY, Interval
from aotidoctor.worker.emulation.lanes.pointers import Pointer
from aotidoctor.worker.emulation.storage import Storage


@record
class IndexValues:
    """``fill`` makes the values of a storage real, ``writes`` are the arguments that the kernel writes to."""

    pointers: Mapping[str, Pointer]
    fill: Callable[[Storage], None]
    writes: set[str]

    def load(self, access: Access, dtype: str, other: Node | None, grid: Grid) -> Any:
        """The values of a load that an address is made of."""
        import numpy as np

        table = self._table(access, dtype)
        index, mask = access.lanes(grid)
        kind = table.dtype
        good = mask & (index >= 0) & (index < len(table))
        if not len(table):
            table = np.zeros(1, dtype=kind)
        values = table[np.where(good, index, 0)]
        rest: Any = kind.type(0)
        if other is not None:
            rest = aligned(other.array(grid), other.rank, index.ndim - 1).astype(kind, copy=False)
        return np.where(good, values, rest)

    def span(self, access: Access, dtype: str, other: Node | None) -> Interval | None:
        """The least and the greatest value of a load, wherever in its reach it goes."""
        if dtype not in ("i8", "u8", "i16", "i32", "i64") or access.index is None:
            return None
        reach = access.index.interval(bounds_of(access.mask)[0])
        table = self._table(access, dtype)
        if reach is None or reach[0] < 0 or reach[1] >= len(table) or reach[0] > reach[1]:
            return None
        part = table[reach[0] : reach[1] + 1]
        low, high = int(part.min()), int(part.max())
        if access.mask is not None:
            rest = (0, 0) if other is None else _number(other)
            if rest is None:
                return None
            low, high = min(low, rest[0]), max(high, rest[1])
        return low, high

    def _table(self, access: Access, dtype: str) -> Any:
        """The elements that a pointer may go to, with their real values."""
        import numpy as np

        pointer = self.pointers[access.argument]
        tensor = pointer.tensor
        if tensor is None:
            raise Unsliceable("values behind a null pointer")
        if any(
            one.tensor is not None and one.tensor.storage is tensor.storage
            for name, one in self.pointers.items()
            if name in self.writes
        ):
            raise Unsliceable("an index that the kernel itself may have written")
        if tensor.start % pointer.itemsize:
            raise Unsliceable("a misaligned table")
        self.fill(tensor.storage)
        first = tensor.start // pointer.itemsize
        extent = tensor.extent // pointer.itemsize if tensor.storage.live else 0
        return tensor.storage.elements(np.dtype(NUMPY[dtype]))[first : first + extent]


def _number(node: Node) -> Interval | None:
    """The range of what stands for lanes that do not go there: ``other=0.0`` is a whole number as well."""
    if node.what == "constant" and isinstance(node.value, float) and node.value.is_integer():
        return int(node.value), int(node.value)
    return node.interval({})
