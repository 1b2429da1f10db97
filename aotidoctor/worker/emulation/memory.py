"""Checked memory: every lane of every load, store and atomic of one launch.

Pointers are made up: that of argument ``k`` begins at ``k << 52``, so that an address tells its argument and, however
far it strays, is never followed into real memory. A lane that is refused reads 0 and writes nothing; the launch goes
on, as the rest of what it does is worth seeing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.worker.emulation.found import Found
from aotidoctor.worker.emulation.storage import Storage, Tensor

_SPAN = 52
_MIDDLE = 1 << (_SPAN - 1)
_MANY = -2
_THROUGH_DATA = re.compile(r"tl\.store\(\w+ \+ \([^)]*\btmp\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """An argument that is a pointer: ``name`` is the kernel's, ``tensor`` the wrapper's, ``itemsize`` of its type."""

    name: str
    number: int
    tensor: Tensor | None
    itemsize: int

    @property
    def address(self) -> int:
        """The made-up address of its first element; 0 for a null pointer."""
        if self.tensor is None:
            return 0
        return (self.number << _SPAN) + _MIDDLE + self.tensor.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Elements one after the other, read or written by one lane each: ``programs()`` are the lanes' programs."""

    storage: Storage
    write: bool
    start: int
    count: int
    size: int
    shape: tuple[int, ...]
    programs: Callable[[], Any]


@dataclass(slots=True)
class Traces:
    """Who wrote and read what in this launch: program numbers by element of a storage, -1 for nobody.

    ``runs`` are accesses that are not in these tables yet: most launches never need the tables.
    """

    writer: dict[int, Any] = field(default_factory=dict)
    reader: dict[int, Any] = field(default_factory=dict)
    runs: dict[int, list[Run]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Memory:
    """The memory of one launch.

    ``programs`` tells the numbers of the programs of a block of lanes (an array that fits its shape, or a number, None
    where all of the programs have the same lane); ``place`` tells line, program and lane of the lane at an index of a
    block. ``shared`` are the storages that the kernel may write to. With ``dry``, nothing is written.
    """

    pointers: Mapping[int, Pointer]
    found: Found
    programs: Callable[[tuple[int, ...]], Any]
    place: Callable[[tuple[int, ...], tuple[int, ...]], dict[str, Any]]
    later: Callable[[tuple[int, ...]], Callable[[], Any]] | None = None
    shared: frozenset[int] = frozenset()
    traces: Traces = field(default_factory=Traces)
    dry: bool = False
    refused: Any = None
    bad_read: bool = False

    def load(self, ptrs: Any, mask: Any, other: Any, dtype: Any, argument: int | None) -> Any:
        """The values at ``ptrs`` where ``mask``, elsewhere ``other`` (0 without); all arrays of one shape."""
        import numpy as np

        given = np.zeros(ptrs.shape, dtype=dtype) if other is None else np.broadcast_to(other, ptrs.shape)
        run = self._dense(ptrs, mask, np.dtype(dtype).itemsize, argument)
        if run is not None and self._joins(run):
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
        if id(storage) in self.shared:
            self._note_read(storage, pointer, at, good)
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
        if run is not None and self._joins(run):
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
        self._note_write(storage, pointer, at, values, cells[index], ptrs.shape, good)
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
        start = int(flat[0]) - ((pointer.number << _SPAN) + _MIDDLE)
        inside = tensor.start <= start and start + count * size <= tensor.start + tensor.extent
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

    def _joins(self, run: Run) -> bool:
        """Keep a run for later where it cannot clash with what this launch did before; else enter all there is."""
        key = id(run.storage)
        if not run.write and key not in self.shared:
            return True
        before = self.traces.runs.setdefault(key, [])
        tables = key in self.traces.writer or key in self.traces.reader
        same = all((one.start, one.count, one.shape) == (run.start, run.count, run.shape) for one in before)
        clear = not any(one.write for one in before) if not run.write else not any(one.write for one in before) and same
        if tables or not clear:
            self._enter(key)
            return False
        before.append(run)
        return True

    def _enter(self, key: int) -> None:
        """Put the kept runs of a storage into the tables."""
        import numpy as np

        for run in self.traces.runs.pop(key, []):
            programs = run.programs()
            if programs is None:
                continue
            own = np.broadcast_to(programs, run.shape).reshape(-1)[: run.count]
            unit = run.storage.unit
            table = self.traces.writer if run.write else self.traces.reader
            cells = table.setdefault(key, np.full(-(-run.storage.size // unit), -1, np.int64))
            index = (run.start + np.arange(run.count) * run.size) // unit
            if run.write:
                cells[index] = own
            else:
                cells[index] = np.where((cells[index] == -1) | (cells[index] == own), own, _MANY)

    def _reach(self, ptrs: Any, mask: Any, size: int, access: str, argument: int | None) -> tuple[Any, Any, Any]:
        """Whose memory it is, byte offsets in it (those of refused lanes are 0), and which lanes may go there."""
        import numpy as np

        whole = bool(mask.all())
        if not whole and not mask.any():
            return None, None, None
        pointer = self._pointer(ptrs, mask, argument)
        if pointer is None or pointer.tensor is None:
            self._refuse_all(ptrs, mask, access, pointer, size)
            return None, None, None
        tensor = pointer.tensor
        at = (ptrs - np.uint64((pointer.number << _SPAN) + _MIDDLE)).view(np.int64)
        low, high = tensor.start, tensor.start + tensor.extent - size
        inside = (at >= low) & (at <= high) if tensor.storage.live else np.zeros(at.shape, dtype=bool)
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
        self._refuse(pointer, at, outside if outside.any() else wrong, access, size)
        return pointer, np.where(good, at, 0), good

    def _pointer(self, ptrs: Any, mask: Any, argument: int | None) -> Pointer | None:
        if argument is None:
            first = ptrs.reshape(-1)[int(mask.reshape(-1).argmax())]
            argument = int(first) >> _SPAN
        return self.pointers.get(argument)

    def _refuse(self, pointer: Pointer, at: Any, wrong: Any, access: str, size: int) -> None:
        import numpy as np

        tensor = pointer.tensor
        if tensor is None:
            return
        index = tuple(int(one) for one in np.unravel_index(int(wrong.argmax()), wrong.shape))
        offset = int(at[index]) - tensor.start
        outside = not 0 <= offset <= tensor.extent - size
        kind = "out-of-bounds" if outside else "misaligned"
        if not tensor.storage.live:
            kind = "use-after-free"
        self.bad_read = True
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

    def _refuse_all(self, ptrs: Any, mask: Any, access: str, pointer: Pointer | None, size: int) -> None:
        import numpy as np

        index = tuple(int(one) for one in np.unravel_index(int(mask.argmax()), mask.shape))
        self.bad_read = True
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

    def _check_written(self, storage: Storage, pointer: Pointer, at: Any, good: Any, mask: Any) -> None:
        fresh = storage.unwritten(at)
        if fresh is None:
            return
        if good is not True:
            fresh = fresh & good
        if fresh.any():
            self._tell("uninitialized", pointer, at, fresh)

    def _tell(self, kind: str, pointer: Pointer, at: Any, where: Any, **facts: Any) -> None:
        import numpy as np

        index = tuple(int(one) for one in np.unravel_index(int(where.argmax()), where.shape))
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

    def _note_read(self, storage: Storage, pointer: Pointer, at: Any, good: Any) -> None:
        """Remember the readers; a program that reads what another of this launch wrote is a race."""
        import numpy as np

        self._enter(id(storage))
        programs = self.programs(at.shape)
        if programs is None:
            return
        programs = np.broadcast_to(programs, at.shape)
        index = at // storage.unit
        writer = self.traces.writer.get(id(storage))
        if writer is not None:
            of = writer[index]
            foreign = (of != -1) & (of != programs)
            if good is not True:
                foreign = foreign & good
            if foreign.any():
                first = int(of.reshape(-1)[int(foreign.argmax())])
                self._tell("race", pointer, at, foreign, access="read of what another program wrote", other=first)
        reader = self.traces.reader.setdefault(id(storage), np.full(-(-storage.size // storage.unit), -1, np.int64))
        chosen = slice(None) if good is True else np.broadcast_to(good, at.shape)
        cells, own = index[chosen], programs[chosen]
        reader[cells] = np.where((reader[cells] == -1) | (reader[cells] == own), own, _MANY)

    def _note_write(  # noqa: PLR0917
        self, storage: Storage, pointer: Pointer, at: Any, values: Any, old: Any, shape: tuple[int, ...], good: Any
    ) -> None:
        """Remember the writers; two programs that write other values to one element, or one that was read, race."""
        import numpy as np

        self._enter(id(storage))
        programs = self.programs(shape)
        if programs is None:
            return
        programs = np.broadcast_to(programs, shape)
        if good is not True:
            programs = programs[np.broadcast_to(good, shape)]
        index = at // storage.unit
        writer = self.traces.writer.setdefault(id(storage), np.full(-(-storage.size // storage.unit), -1, np.int64))
        before = writer[index]
        writer[index] = programs
        differs = ~((values == old) | (_is_nan(values) & _is_nan(old)))
        clash = (before != -1) & (before != programs) & differs
        # Lanes of one block: the last one that wrote stands in the table.
        last = writer[index] != programs
        if last.any():
            clash = clash | (last & self._differ_within(storage, index, values, writer))
        reader = self.traces.reader.get(id(storage))
        read = None
        if reader is not None:
            of = reader[index]
            read = (of != -1) & (of != programs) & differs
        if clash.any():
            self._race(pointer, at, clash, good, shape, "write of what another program wrote")
        elif read is not None and read.any():
            self._race(pointer, at, read, good, shape, "write of what another program reads")

    def _differ_within(self, storage: Storage, index: Any, values: Any, writer: Any) -> Any:
        """Which lanes write something else than the lane that wrote to the same element last."""
        import numpy as np

        last = np.zeros(len(writer), dtype=values.dtype)
        last[index] = values
        return ~((last[index] == values) | (_is_nan(values) & _is_nan(last[index])))

    def _race(  # noqa: PLR0917
        self, pointer: Pointer, at: Any, where: Any, good: Any, shape: tuple[int, ...], access: str
    ) -> None:
        import numpy as np

        if good is not True:
            whole = np.zeros(shape, dtype=bool)
            offsets = np.zeros(shape, dtype=np.int64)
            chosen = np.broadcast_to(good, shape)
            whole[chosen], offsets[chosen] = where, at
            where, at = whole, offsets
        here = self.place(tuple(0 for _ in where.shape), where.shape)
        # Written through indices of the data: which of two equal ones stays is the model's own affair.
        kind = "duplicate-index" if _THROUGH_DATA.search(str(here.get("text"))) else "race"
        self._tell(kind, pointer, at, where, access=access)


def _is_nan(values: Any) -> Any:
    return values != values  # noqa: PLR0124 - whatever the dtype


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
