"""Checked memory: every lane of every load, store and atomic of one launch.

A lane that is refused reads 0 and writes nothing; the launch goes on, as the rest of what it does is worth seeing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aotidoctor.worker.emulation.lanes.lane_findings import LaneFindings
from aotidoctor.worker.emulation.lanes.pointers import Pointer, argument_of
from aotidoctor.worker.emulation.lanes.races import Races, Run
from aotidoctor.worker.emulation.storage import Storage


@dataclass(slots=True, kw_only=True)
class Memory:
    """The memory of one launch. ``pointers`` by their numbers; ``findings`` tell, ``races`` remember.

    ``later`` is what ``races.programs`` says as of now, for when it is needed. With ``dry``, nothing is written.
    """

    pointers: Mapping[int, Pointer]
    findings: LaneFindings
    races: Races
    later: Callable[[tuple[int, ...]], Callable[[], Any]] | None = None
    dry: bool = False

    def load(self, ptrs: Any, mask: Any, other: Any, dtype: Any, argument: int | None) -> Any:
        """The values at ``ptrs`` where ``mask``, elsewhere ``other`` (0 without); all arrays of one shape."""
        import numpy as np

        given = np.zeros(ptrs.shape, dtype=dtype) if other is None else np.broadcast_to(other, ptrs.shape)
        run = self._dense(ptrs, mask, np.dtype(dtype).itemsize, argument)
        if run is not None and self.races.joins(run):
            cells = run.storage.elements(dtype)[run.start // run.size : run.start // run.size + run.count]
            if run.count == ptrs.size:
                return cells.reshape(ptrs.shape).copy()
            values = np.array(given, dtype=dtype)
            values.reshape(-1)[: run.count] = cells
            return values
        pointer, at, good = self._reach(ptrs, mask, np.dtype(dtype).itemsize, "load", argument)
        if pointer is None or pointer.tensor is None:
            return np.array(given, dtype=dtype)
        storage = pointer.tensor.storage
        self._check_written(storage, pointer, at, good, mask)
        if id(storage) in self.races.shared:
            self.races.read(storage, pointer, at, good)
        values = storage.elements(dtype)[at // np.dtype(dtype).itemsize]
        return values if good is True else np.where(good, values, given).astype(dtype, copy=False)

    def store(self, ptrs: Any, values: Any, mask: Any, argument: int | None) -> None:
        """Write ``values`` to ``ptrs`` where ``mask``."""
        import numpy as np

        values = np.broadcast_to(values, ptrs.shape)
        size = values.dtype.itemsize
        run = self._dense(ptrs, mask, size, argument, write=True)
        if self.dry:
            self._reach(ptrs, mask, size, "store", argument)
            return
        if run is not None and self.races.joins(run):
            first = run.start // size
            run.storage.elements(values.dtype)[first : first + run.count] = values.reshape(-1)[: run.count]
            if run.storage.written is not None:
                unit = run.storage.unit
                run.storage.written[run.start // unit : (run.start + run.count * size) // unit] = True
            return
        pointer, at, good = self._reach(ptrs, mask, size, "store", argument)
        if pointer is None or pointer.tensor is None:
            return
        storage = pointer.tensor.storage
        if good is not True:
            chosen = np.broadcast_to(good, ptrs.shape)
            at, values = at[chosen], values[chosen]
        cells = storage.elements(values.dtype)
        index = at // size
        self.races.write(storage, pointer, at, values, cells[index], ptrs.shape, good)
        cells[index] = values
        storage.mark(at.reshape(-1), size)

    def update(self, ptrs: Any, values: Any, mask: Any, operation: str, argument: int | None) -> Any:
        """An atomic read-modify-write, lane after lane; what stood there before."""
        import numpy as np

        shape = np.broadcast_shapes(ptrs.shape, values.shape, mask.shape)
        ptrs, values, mask = (np.broadcast_to(one, shape) for one in (ptrs, values, mask))
        size = values.dtype.itemsize
        pointer, at, good = self._reach(ptrs, mask, size, "atomic", argument)
        before = np.zeros(shape, dtype=values.dtype)
        if pointer is None or pointer.tensor is None:
            return before
        storage = pointer.tensor.storage
        self._check_written(storage, pointer, at, good, mask)
        chosen = np.ones(shape, dtype=bool) if good is True else np.broadcast_to(good, shape)
        cells = storage.elements(values.dtype)
        index, given = at[chosen] // size, values[chosen]
        before[chosen] = cells[index]
        if not self.dry:
            _UPDATES[operation](cells, index, given)
        return before

    def swap(self, ptrs: Any, expected: Any, values: Any, argument: int | None) -> Any:
        """Compare and swap, lane after lane."""
        import numpy as np

        before = self.load(ptrs, np.ones(ptrs.shape, dtype=bool), None, values.dtype, argument)
        hit = np.broadcast_to(before == expected, ptrs.shape)
        if hit.any():
            self.store(ptrs, np.broadcast_to(values, ptrs.shape), hit, argument)
        return before

    def _dense(self, ptrs: Any, mask: Any, size: int, argument: int | None, *, write: bool = False) -> Run | None:
        """The access as a run of elements, each lane the next one, up to the first lane that is masked; else None.

        Only where all of it is inside, aligned, and, to be read, written before.
        """
        import numpy as np

        pointer = self.pointers.get(argument) if argument is not None else None
        if pointer is None or pointer.tensor is None or self.later is None or not ptrs.size:
            return None
        tensor = pointer.tensor
        marks = mask.reshape(-1)
        count = int(np.count_nonzero(marks))
        flat = ptrs.reshape(-1)
        if not count or not marks[0] or not marks[count - 1] or (count < len(marks) and not marks[:count].all()):
            return None
        start = int(flat[0]) - pointer.origin
        low, high = pointer.bounds
        inside = low <= start and start + count * size <= high
        storage = tensor.storage
        if not inside or not storage.live or start % size or size % storage.unit:
            return None
        if count > 1 and not (np.diff(flat[:count]) == np.uint64(size)).all():
            return None
        part = slice(start // storage.unit, (start + count * size) // storage.unit)
        fresh = not write and storage.written is not None and storage.known
        if fresh and not storage.written[part].all():
            return None
        return Run(
            storage=storage, write=write, start=start, count=count, size=size, shape=ptrs.shape,
            programs=self.later(ptrs.shape),
        )  # fmt: skip

    def _reach(self, ptrs: Any, mask: Any, size: int, access: str, argument: int | None) -> tuple[Any, Any, Any]:
        """Whose memory it is, byte offsets in it (those of refused lanes are 0), and which lanes may go there."""
        import numpy as np

        whole = bool(mask.all())
        if not whole and not mask.any():
            return None, None, None
        pointer = self._pointer(ptrs, mask, argument)
        if pointer is None or pointer.tensor is None:
            self.findings.refuse_all(mask, access, pointer, size)
            return None, None, None
        tensor = pointer.tensor
        at = (ptrs - np.uint64(pointer.origin)).view(np.int64)
        low, high = pointer.bounds
        inside = (at >= low) & (at <= high - size) if tensor.storage.live else np.zeros(at.shape, dtype=bool)
        even = (at & (size - 1)) == 0
        good = inside & even
        if good.all():
            return pointer, at, True if whole else mask
        if not whole:
            wrong = mask & ~good
            good = good & mask
            if not wrong.any():
                return pointer, np.where(good, at, low), good
        else:
            wrong = ~good
        outside = wrong & ~inside
        self.findings.refuse(pointer, at, outside if outside.any() else wrong, access, size)
        return pointer, np.where(good, at, 0), good

    def _pointer(self, ptrs: Any, mask: Any, argument: int | None) -> Pointer | None:
        if argument is None:
            first = ptrs.reshape(-1)[int(mask.reshape(-1).argmax())]
            argument = argument_of(int(first))
        return self.pointers.get(argument)

    def _check_written(self, storage: Storage, pointer: Pointer, at: Any, good: Any, mask: Any) -> None:
        fresh = storage.unwritten(at)
        if fresh is None:
            return
        if good is not True:
            fresh = fresh & good
        if fresh.any():
            self.findings.tell("uninitialized", pointer, at, fresh)


def _exchange(cells: Any, index: Any, values: Any) -> None:
    cells[index] = values


def _ufunc(name: str) -> Callable[[Any, Any, Any], None]:
    def apply(cells: Any, index: Any, values: Any) -> None:
        import numpy as np

        getattr(np, name).at(cells, index, values)

    return apply


_UPDATES: Mapping[str, Callable[[Any, Any, Any], None]] = {
    "add": _ufunc("add"),
    "fadd": _ufunc("add"),
    "min": _ufunc("minimum"),
    "max": _ufunc("maximum"),
    "umin": _ufunc("minimum"),
    "umax": _ufunc("maximum"),
    "and": _ufunc("bitwise_and"),
    "or": _ufunc("bitwise_or"),
    "xor": _ufunc("bitwise_xor"),
    "xchg": _exchange,
}
