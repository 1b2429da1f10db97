"""Check every lane of every load, store and atomic of one launch; detect races between its program instances.

A refused lane reads 0 and writes nothing; the launch goes on, as its other accesses are of interest too.

Programs of a GPU run in any order. Two that write different values to one element race, and so does one that reads
what another writes; a race through indices of the data is reported as a duplicate index, which the model may intend.

The first NaN and the first infinity that a launch makes of finite values are reported as well.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.storage import EmulatedStorage, LaneFindings, Pointer, argument_of, first_lane


@dataclass(slots=True, kw_only=True)
class FirstNan:
    """The first NaN and infinity that a launch stores.

    ``place`` gives line, program and lane of an index of a block; ``made`` are facts by kind.
    """

    place: Callable[[tuple[int, ...], tuple[int, ...]], dict[str, Any]]
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    odd_read: bool = False

    def see(self, access: str, values: Any, dtype: Any, mask: Any) -> None:
        """Check the values of a load or a store; ``mask`` None for all lanes."""
        data = (values.astype(np.uint32) << 16).view(np.float32) if str(dtype) == "bf16" else values
        if data.dtype.kind != "f":
            return
        odd = ~np.isfinite(data)
        if mask is not None:
            odd = odd & mask
        if not odd.any():
            return
        if access == "load":
            self.odd_read = True
            return
        nan = np.broadcast_to(np.isnan(data), odd.shape) & odd
        kind = "nan" if nan.any() else "inf"
        where = nan if kind == "nan" else odd
        self.made.setdefault(kind, {**self.place(first_lane(where), where.shape), "count": int(where.sum())})

    def findings(self) -> dict[str, dict[str, Any]]:
        """The findings by kind: none where the launch was given NaN or infinity."""
        return {} if self.odd_read else self.made


# Races: the programs that wrote and read each element.
_MANY = -2
_THROUGH_DATA = re.compile(r"tl\.store\(\w+ \+ \([^)]*\btmp\d")


@record
class ElementRun:
    """Elements one after the other, read or written by one lane each: ``programs()`` are the lanes' programs."""

    storage: EmulatedStorage
    write: bool
    start: int
    count: int
    size: int
    shape: tuple[int, ...]
    programs: Callable[[], Any]


@dataclass(slots=True, kw_only=True)
class Races:
    """Program numbers by element of a storage, -1 for none.

    ``programs`` gives the numbers of the programs of a block of lanes (an array that fits its shape, or a number, None
    where all of the programs have the same lane). ``shared`` are the storages that the kernel may write to. ``runs``
    are accesses that are not in the tables yet: most launches never need the tables.
    """

    findings: LaneFindings
    programs: Callable[[tuple[int, ...]], Any]
    shared: frozenset[int]
    writer: dict[int, Any] = field(default_factory=dict)
    reader: dict[int, Any] = field(default_factory=dict)
    runs: dict[int, list[ElementRun]] = field(default_factory=dict)

    def joins(self, run: ElementRun) -> bool:
        """Whether a run cannot clash with earlier ones; else the runs of its storage are entered into the tables."""
        key = id(run.storage)
        if not run.write and key not in self.shared:
            return True
        before = self.runs.setdefault(key, [])
        tables = key in self.writer or key in self.reader
        same = all((one.start, one.count, one.shape) == (run.start, run.count, run.shape) for one in before)
        clear = not any(one.write for one in before) and (same or not run.write)
        if tables or not clear:
            self._enter(key)
            return False
        before.append(run)
        return True

    def _enter(self, key: int) -> None:
        """Enter the runs of a storage into the tables."""
        for run in self.runs.pop(key, []):
            programs = run.programs()
            if programs is None:
                continue
            own = np.broadcast_to(programs, run.shape).reshape(-1)[: run.count]
            index = (run.start + np.arange(run.count) * run.size) // run.storage.unit
            if run.write:
                writer_table(self.writer, run.storage)[index] = own
            else:
                note_readers(writer_table(self.reader, run.storage), index, own)

    def read(self, storage: EmulatedStorage, pointer: Pointer, at: Any, good: Any) -> None:
        """Record the readers; report a race where a program reads what another of this launch wrote."""
        self._enter(id(storage))
        programs = self.programs(at.shape)
        if programs is None:
            return
        programs = np.broadcast_to(programs, at.shape)
        index = at // storage.unit
        writer = self.writer.get(id(storage))
        if writer is not None:
            of = writer[index]
            foreign = (of != -1) & (of != programs)
            if good is not True:
                foreign = foreign & good
            if foreign.any():
                first = int(of.reshape(-1)[int(foreign.argmax())])
                self.findings.report(
                    "race", pointer, at, foreign, access="read of what another program wrote", other=first
                )
        chosen = slice(None) if good is True else np.broadcast_to(good, at.shape)
        note_readers(writer_table(self.reader, storage), index[chosen], programs[chosen])

    def write(
        self,
        storage: EmulatedStorage,
        pointer: Pointer,
        at: Any,
        *,
        values: Any,
        old: Any,
        shape: tuple[int, ...],
        good: Any,
    ) -> None:
        """Record the writers; report a race where another program wrote a different value, or read the element."""
        self._enter(id(storage))
        programs = self.programs(shape)
        if programs is None:
            return
        programs = np.broadcast_to(programs, shape)
        if good is not True:
            programs = programs[np.broadcast_to(good, shape)]
        index = at // storage.unit
        writer = writer_table(self.writer, storage)
        before = writer[index]
        writer[index] = programs
        differs = ~((values == old) | (np.isnan(values) & np.isnan(old)))
        clash = (before != -1) & (before != programs) & differs
        # Of several lanes of one block the last one is in the table; the others clash where they write another value.
        last = writer[index] != programs
        if last.any():
            final = np.zeros(len(writer), dtype=values.dtype)
            final[index] = values
            final = final[index]
            clash = clash | (last & ~((values == final) | (np.isnan(values) & np.isnan(final))))
        reader = self.reader.get(id(storage))
        read = None
        if reader is not None:
            of = reader[index]
            read = (of != -1) & (of != programs) & differs
        where, access = clash, "write of what another program wrote"
        if not clash.any():
            where, access = read, "write of what another program reads"
        if where is None or not where.any():
            return
        if good is not True:
            chosen = np.broadcast_to(good, shape)
            whole, offsets = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=np.int64)
            whole[chosen], offsets[chosen] = where, at
            where, at = whole, offsets
        here = self.findings.place(tuple(0 for _ in where.shape), where.shape)
        # Written through indices of the data: the model decides which of two equal ones stays.
        kind = "duplicate-index" if _THROUGH_DATA.search(str(here.get("text"))) else "race"
        self.findings.report(kind, pointer, at, where, access=access)


def writer_table(tables: dict[int, Any], storage: EmulatedStorage, dtype: str = "int64") -> Any:
    """The table of a storage: the number of a program for each element; -1 for none."""
    if id(storage) not in tables:
        tables[id(storage)] = np.full(storage.cells, -1, dtype)
    return tables[id(storage)]


def note_readers(table: Any, index: Any, programs: Any) -> None:
    """Record the readers; an element that several programs read gets a mark of its own."""
    before = table[index]
    readers = np.where((before == -1) | (before == programs), programs, _MANY)
    table[index] = readers
    # Several of these lanes may read one element: the last one is in the table.
    table[index[table[index] != readers]] = _MANY


# The memory of one launch.
@dataclass(slots=True, kw_only=True)
class LaunchMemory:
    """The memory of one launch, with ``pointers`` by their numbers.

    ``later`` gives what ``races.programs`` returns now, for when it is needed. With ``dry``, nothing is written.
    """

    pointers: Mapping[int, Pointer]
    findings: LaneFindings
    races: Races
    later: Callable[[tuple[int, ...]], Callable[[], Any]] | None = None
    dry: bool = False

    def load(self, ptrs: Any, mask: Any, other: Any, dtype: Any, argument: int | None) -> Any:
        """The values at ``ptrs`` where ``mask``, elsewhere ``other`` (0 without); all arrays of one shape."""
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
        self.races.write(storage, pointer, at, values=values, old=cells[index], shape=ptrs.shape, good=good)
        cells[index] = values
        storage.mark(at.reshape(-1), size)

    def update(self, ptrs: Any, values: Any, mask: Any, operation: str, argument: int | None) -> Any:
        """Do an atomic read-modify-write, lane after lane; return the values before it."""
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
        """Compare and swap, lane after lane; return the values before it."""
        before = self.load(ptrs, np.ones(ptrs.shape, dtype=bool), None, values.dtype, argument)
        hit = np.broadcast_to(before == expected, ptrs.shape)
        if hit.any():
            self.store(ptrs, np.broadcast_to(values, ptrs.shape), hit, argument)
        return before

    def _dense(
        self, ptrs: Any, mask: Any, size: int, argument: int | None, *, write: bool = False
    ) -> ElementRun | None:
        """The access as a run of elements, each lane the next one, up to the first lane that is masked; else None.

        Only where all of it is inside, aligned, and, to be read, written before.
        """
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
        return ElementRun(
            storage=storage, write=write, start=start, count=count, size=size, shape=ptrs.shape,
            programs=self.later(ptrs.shape),
        )  # fmt: skip

    def _reach(self, ptrs: Any, mask: Any, size: int, access: str, argument: int | None) -> tuple[Any, Any, Any]:
        """The pointer, byte offsets in its allocation (those of refused lanes are 0), and which lanes may go there."""
        whole = bool(mask.all())
        if not whole and not mask.any():
            return None, None, None
        if argument is None:
            argument = argument_of(int(ptrs.reshape(-1)[int(mask.reshape(-1).argmax())]))
        pointer = self.pointers.get(argument)
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

    def _check_written(self, storage: EmulatedStorage, pointer: Pointer, at: Any, good: Any, mask: Any) -> None:
        fresh = storage.unwritten(at)
        if fresh is None:
            return
        if good is not True:
            fresh = fresh & good
        if fresh.any():
            self.findings.report("uninitialized", pointer, at, fresh)


_UPDATES: Mapping[str, Callable[[Any, Any, Any], None]] = {
    "add": np.add.at,
    "fadd": np.add.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
    "umin": np.minimum.at,
    "umax": np.maximum.at,
    "and": np.bitwise_and.at,
    "or": np.bitwise_or.at,
    "xor": np.bitwise_xor.at,
    "xchg": operator.setitem,
}
