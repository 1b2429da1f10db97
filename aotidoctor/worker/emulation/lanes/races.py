"""Who wrote and who read each element in one launch: programs that come in each other's way.

Programs of a GPU run in any order. Two that write other values to one element, or one that reads what another writes,
race; through indices of the data it is told as a duplicate index, which may be what the model means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.lanes.lane_findings import LaneFindings
from aotidoctor.worker.emulation.lanes.pointers import Pointer
from aotidoctor.worker.emulation.storage import Storage

_MANY = -2
_THROUGH_DATA = re.compile(r"tl\.store\(\w+ \+ \([^)]*\btmp\d")


@record
class Run:
    """Elements one after the other, read or written by one lane each: ``programs()`` are the lanes' programs."""

    storage: Storage
    write: bool
    start: int
    count: int
    size: int
    shape: tuple[int, ...]
    programs: Callable[[], Any]


@dataclass(slots=True, kw_only=True)
class Races:
    """Program numbers by element of a storage, -1 for nobody.

    ``programs`` tells the numbers of the programs of a block of lanes (an array that fits its shape, or a number, None
    where all of the programs have the same lane). ``shared`` are the storages that the kernel may write to. ``runs``
    are accesses that are not in the tables yet: most launches never need the tables.
    """

    findings: LaneFindings
    programs: Callable[[tuple[int, ...]], Any]
    shared: frozenset[int]
    writer: dict[int, Any] = field(default_factory=dict)
    reader: dict[int, Any] = field(default_factory=dict)
    runs: dict[int, list[Run]] = field(default_factory=dict)

    def joins(self, run: Run) -> bool:
        """Keep a run for later where it cannot clash with what this launch did before; else enter all there is."""
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
        """Put the kept runs of a storage into the tables."""
        import numpy as np

        for run in self.runs.pop(key, []):
            programs = run.programs()
            if programs is None:
                continue
            own = np.broadcast_to(programs, run.shape).reshape(-1)[: run.count]
            index = (run.start + np.arange(run.count) * run.size) // run.storage.unit
            if run.write:
                table_of(self.writer, run.storage)[index] = own
            else:
                note_readers(table_of(self.reader, run.storage), index, own)

    def read(self, storage: Storage, pointer: Pointer, at: Any, good: Any) -> None:
        """Remember the readers; a program that reads what another of this launch wrote is a race."""
        import numpy as np

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
                self.findings.tell(
                    "race", pointer, at, foreign, access="read of what another program wrote", other=first
                )
        chosen = slice(None) if good is True else np.broadcast_to(good, at.shape)
        note_readers(table_of(self.reader, storage), index[chosen], programs[chosen])

    def write(  # noqa: PLR0917
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
        writer = table_of(self.writer, storage)
        before = writer[index]
        writer[index] = programs
        differs = ~((values == old) | (_is_nan(values) & _is_nan(old)))
        clash = (before != -1) & (before != programs) & differs
        # Lanes of one block: the last one that wrote stands in the table.
        last = writer[index] != programs
        if last.any():
            clash = clash | (last & self._differ_within(storage, index, values, writer))
        reader = self.reader.get(id(storage))
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
        here = self.findings.place(tuple(0 for _ in where.shape), where.shape)
        # Written through indices of the data: which of two equal ones stays is the model's own affair.
        kind = "duplicate-index" if _THROUGH_DATA.search(str(here.get("text"))) else "race"
        self.findings.tell(kind, pointer, at, where, access=access)


def table_of(tables: dict[int, Any], storage: Storage, dtype: str = "int64") -> Any:
    """The number of a program for each element of a storage; -1 for nobody."""
    import numpy as np

    if id(storage) not in tables:
        tables[id(storage)] = np.full(storage.cells, -1, dtype)
    return tables[id(storage)]


def note_readers(table: Any, index: Any, programs: Any) -> None:
    """Remember who reads; an element that several read is everybody's."""
    import numpy as np

    before = table[index]
    readers = np.where((before == -1) | (before == programs), programs, _MANY)
    table[index] = readers
    # Several lanes of these may read one element: the last one stands in the table.
    table[index[table[index] != readers]] = _MANY


def _is_nan(values: Any) -> Any:
    return values != values  # noqa: PLR0124 - whatever the dtype
