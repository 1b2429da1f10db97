"""Check the addresses of a launch for the whole grid at once, without what the kernel computes: the quick way.

Most accesses are settled by arithmetic on their bounds alone, whatever the number of lanes; the others are evaluated
by NumPy, some million lanes at a time. Values are read only where an address, a mask or an assertion depends on them.
A finding is confirmed by the interpreter, in the programs that it is about, before it is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.address_slices import ElementForm, Slicer, index_form, mask_bounds
from aotidoctor.worker.emulation.checked_memory import note_readers, writer_table
from aotidoctor.worker.emulation.index_nodes import (
    Access,
    AddressNode,
    IndexOverflow,
    IndexPointer,
    ProgramGrid,
    Unsliceable,
    align_rank,
    constant_node,
    number_node,
)
from aotidoctor.worker.emulation.kernel_source import NUMPY, Interval
from aotidoctor.worker.emulation.launch import LaneLaunch
from aotidoctor.worker.emulation.storage import EmulatedStorage, Pointer


# Values that an address, a mask or an assertion depends on.
@record
class IndexValues:
    """Values of loads: ``fill`` computes those of a storage, ``writes`` are the arguments that the kernel writes to."""

    pointers: Mapping[str, Pointer]
    fill: Callable[[EmulatedStorage], None]
    writes: set[str]

    def load(self, access: Access, dtype: str, other: AddressNode | None, grid: ProgramGrid) -> Any:
        """The values of a load that an address depends on."""
        table = self._table(access, dtype)
        index, mask = access.lanes(grid)
        kind = table.dtype
        good = mask & (index >= 0) & (index < len(table))
        if not len(table):
            table = np.zeros(1, dtype=kind)
        values = table[np.where(good, index, 0)]
        rest: Any = kind.type(0)
        if other is not None:
            rest = align_rank(other.array(grid), other.rank, index.ndim - 1).astype(kind, copy=False)
        return np.where(good, values, rest)

    def span(self, access: Access, dtype: str, other: AddressNode | None) -> Interval | None:
        """The least and the greatest value that a load can have."""
        if dtype not in ("i8", "u8", "i16", "i32", "i64") or access.index is None:
            return None
        reach = access.index.interval(mask_bounds(access.mask)[0])
        table = self._table(access, dtype)
        if reach is None or reach[0] < 0 or reach[1] >= len(table) or reach[0] > reach[1]:
            return None
        part = table[reach[0] : reach[1] + 1]
        low, high = int(part.min()), int(part.max())
        if access.mask is not None:
            # What lanes that do not go there get; ``other=0.0`` is an integer as well.
            constant = 0.0 if other is None else other.value if other.what == "constant" else None
            if isinstance(constant, float) and constant.is_integer():
                rest: Interval | None = (int(constant), int(constant))
            else:
                rest = other.interval({}) if other is not None else None
            if rest is None:
                return None
            low, high = min(low, rest[0]), max(high, rest[1])
        return low, high

    def _table(self, access: Access, dtype: str) -> Any:
        """The elements that a pointer may go to, with their real values."""
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


# Accesses that their bounds settle, and those that are left to evaluate.
@dataclass(slots=True, kw_only=True)
class AccessPlan:
    """What to check by lane for one access; ``known`` are the ranges that its mask gives."""

    access: Access
    pointer: Pointer | None
    known: Mapping[int, Interval]
    bounds: bool = False
    fresh: bool = False
    mark: bool = False
    table: bool = False

    @property
    def needed(self) -> bool:
        """Whether anything is to be checked."""
        return self.bounds or self.fresh or self.mark or self.table


@dataclass(slots=True, kw_only=True)
class AccessSettler:
    """Settle the accesses of a launch in the order of its text.

    ``later`` are the storages whose marks of first use wait for their lanes.
    """

    pointers: Mapping[str, Pointer]
    grid: tuple[int, int, int]
    later: set[int] = field(default_factory=set)

    def plans(self, accesses: list[Access]) -> list[AccessPlan]:
        """One plan for each access; what is written as a whole is marked as written at once."""
        made: list[AccessPlan] = []
        touched: dict[int, list[tuple[AccessPlan, Any]]] = {}
        for access in accesses:
            known, nodes, complete = mask_bounds(access.mask)
            pointer = self.pointers.get(access.argument)
            plan = AccessPlan(access=access, pointer=pointer, known=known)
            made.append(plan)
            if access.what == "assert":
                plan.bounds = access.mask is None or access.mask.truth({}) is not True
            elif all(low <= high for low, high in known.values()):
                form = self._plan(plan, nodes, complete)
                tensor = pointer.tensor if pointer is not None else None
                if pointer is not None and tensor is not None and access.what != "atomic":
                    # Equal for accesses that go, lane by lane, to the same bytes; None where that is not known.
                    place = (tensor.start, pointer.itemsize, form.key) if form is not None else None
                    touched.setdefault(id(tensor.storage), []).append((plan, place))
        for group in touched.values():
            places = {place for _, place in group}
            if any(plan.access.what == "store" for plan, _ in group) and (len(places) > 1 or None in places):
                # One lane may go where another goes.
                for plan, _ in group:
                    plan.table = True
        return made

    def _plan(self, plan: AccessPlan, nodes: Mapping[int, AddressNode], complete: bool) -> ElementForm | None:
        """Settle what can be settled without evaluating lanes, and note the rest."""
        access, pointer = plan.access, plan.pointer
        if access.index is None or pointer is None or pointer.tensor is None:
            plan.bounds = True
            return None
        tensor, size = pointer.tensor, pointer.itemsize
        reach = access.index.interval(plan.known)
        inside = reach is not None and reach[0] >= 0 and (reach[1] + 1) * size <= tensor.extent
        plan.bounds = not inside or tensor.start % size != 0 or not tensor.storage.live
        form = index_form(access.index, plan.known, nodes, self.grid) if reach is not None and complete else None
        storage = tensor.storage
        if storage.written is None or size % storage.unit:
            return form
        if plan.bounds or form is None or not form.whole or id(storage) in self.later:
            # What comes after it in the text must not be noted before it.
            self.later.add(id(storage))
            plan.fresh, plan.mark = access.what != "store", access.what == "store"
            return form
        part = slice((tensor.start + form.start * size) // storage.unit,
                     (tensor.start + (form.last + 1) * size) // storage.unit)  # fmt: skip
        if access.what == "store":
            if (part.start, part.stop) == (0, len(storage.written)):
                storage.all_written()
            else:
                storage.written[part] = True
        else:
            plan.fresh = not storage.written[part].all()
            self.later |= {id(storage)} if plan.fresh else set()
        return form


# The quick way. Lanes that are evaluated together.
TOGETHER = 1 << 20
# The block along a looped reduction.
_LONGEST_LOOP = 1 << 19
# Guilty programs that are carried out again.
MOST_GUILTY = 4


@dataclass(slots=True, kw_only=True)
class LaunchAccesses:
    """Accesses of one launch: the kernel's arguments that are read and written; findings; lanes."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    found: list[dict[str, Any]] = field(default_factory=list)
    programs: set[int] = field(default_factory=set)
    lanes: int = 0
    unclear: str | None = None

    def add(self, facts: dict[str, Any]) -> None:
        """Add a finding; more lanes of the same access are counted."""
        for known in self.found:
            if all(known.get(key) == facts.get(key) for key in ("kind", "line", "argument")):
                known["count"] += facts["count"]
                return
        self.found.append(facts)


@dataclass(slots=True, kw_only=True)
class AddressCheck:
    """Check of one launch. ``fill`` computes the values of a storage before they are read."""

    launch: LaneLaunch
    fill: Callable[[EmulatedStorage], None]
    seen: LaunchAccesses = field(default_factory=LaunchAccesses)
    pointers: dict[str, Pointer] = field(default_factory=dict)
    writer: dict[int, Any] = field(default_factory=dict)
    reader: dict[int, Any] = field(default_factory=dict)

    def look(self) -> LaunchAccesses:
        """Check every access. Raises ``Unsliceable``, and ``CannotReplayError`` where values are missing."""
        try:
            launch = self.launch
            launch.prepare()
            self.pointers = launch.pointers()
            dtypes = {name: launch.kernel.signature[name].removeprefix("*") for name in self.pointers}
            values = IndexValues(pointers=self.pointers, fill=self.fill, writes=self.seen.writes)
            slicer = Slicer(
                grid=launch.grid, load=values.load, span=values.span, pointers=dtypes, names=self._names(),
            )  # fmt: skip
            slicer.run(launch.kernel.function.body)
            for access in slicer.accesses:
                if access.what in ("load", "atomic"):
                    self.seen.reads.add(access.argument)
                if access.what in ("store", "atomic"):
                    self.seen.writes.add(access.argument)
            # Lanes of one program.
            per_program = 1
            for name in ("XBLOCK", "YBLOCK", "ZBLOCK", "R0_BLOCK", "R1_BLOCK"):
                fixed = self.launch.sizes.fixed(name, 0)
                if fixed or name in self.launch.kernel.signature:
                    per_program *= fixed or self.launch.sizes.of(name, _LONGEST_LOOP)
            for name, value in self.launch.kernel.constants.items():
                if "BLOCK" in name and isinstance(value, int) and value > 0:
                    per_program *= value
            self.seen.lanes = per_program * prod(launch.grid) * len(slicer.accesses)
            plans = AccessSettler(pointers=self.pointers, grid=launch.grid).plans(slicer.accesses)
            try:
                self._by_lane([plan for plan in plans if plan.needed], max(1, TOGETHER // per_program))
            except IndexOverflow:
                self.seen.unclear = "a 32-bit index may overflow"
            return self.seen
        finally:
            # The graphs refer to themselves and live for a while: they must not hold the tensors.
            self.pointers.clear()

    def _names(self) -> dict[str, Any]:
        """The kernel's parameters."""
        launch, made = self.launch, dict[str, Any]()
        for name, kind in launch.kernel.signature.items():
            if kind.startswith("*"):
                made[name] = IndexPointer(argument=name, offset=constant_node(0))
            elif kind == "constexpr":
                value = launch.kernel.constants.get(name)
                if value is None and name.endswith("BLOCK") and not launch.kernel.custom:
                    value = self.launch.sizes.of(name, _LONGEST_LOOP)
                if isinstance(value, bool | int | float):
                    made[name] = constant_node(value)
                elif isinstance(value, str) or name in launch.kernel.constants:
                    made[name] = value
            else:
                made[name] = number_node(launch.arguments[name], kind)
        return made

    def _by_lane(self, plans: list[AccessPlan], programs: int) -> None:
        total = prod(self.launch.grid) if plans else 0
        for first in range(0, total, programs):
            grid = ProgramGrid(sizes=self.launch.grid, first=first, count=min(programs, total - first))
            for plan in plans:
                if plan.access.what != "assert":
                    self._look(plan, grid)
                elif plan.access.mask is not None:
                    wrong = ~plan.access.mask.array(grid).astype(bool)
                    if wrong.any():
                        self._tell("device-assert", plan, grid, wrong, message=plan.access.message[:300])

    def _look(self, plan: AccessPlan, grid: ProgramGrid) -> None:
        """Check bounds, first use, marks and clashes of one access, lane by lane."""
        access = plan.access
        index, mask = access.lanes(grid)
        pointer = plan.pointer
        if pointer is None or pointer.tensor is None:
            if mask.any():
                self.seen.unclear = "a null pointer is used"
            return
        tensor, size = pointer.tensor, pointer.itemsize
        good = mask
        if plan.bounds:
            extent = tensor.extent // size if tensor.storage.live else 0
            outside = mask & ((index < 0) | (index >= extent))
            if outside.any():
                offset = int(index[np.unravel_index(int(outside.argmax()), outside.shape)])
                kind = "out-of-bounds" if tensor.storage.live else "use-after-free"
                self._tell(kind, plan, grid, outside, access=access.what, **tensor.facts_at(offset * size, size))
                good = mask & ~outside
            if tensor.start % size and good.any():
                self.seen.unclear = "an address may be misaligned"
        if not good.any():
            return
        if not good.all():
            index = np.where(good, index, 0)
        cells = (index * size + tensor.start) // tensor.storage.unit
        self._note(plan, grid, cells, good)

    def _note(self, plan: AccessPlan, grid: ProgramGrid, cells: Any, good: Any) -> None:
        """Note what is written, and by which program."""
        if plan.pointer is None or plan.pointer.tensor is None:
            return
        storage, access = plan.pointer.tensor.storage, plan.access
        if plan.fresh and storage.written is not None:
            never = ~storage.written[cells] & good
            if never.any():
                self._tell("uninitialized", plan, grid, never)
        chosen = cells[good] if not good.all() else cells.reshape(-1)
        if plan.mark:
            storage.mark(chosen * storage.unit, plan.pointer.itemsize)
        if not plan.table:
            return
        own = np.broadcast_to(
            (np.arange(grid.count, dtype=np.int32) + grid.first).reshape((-1,) + (1,) * (cells.ndim - 1)), cells.shape
        )
        own = own[good] if not good.all() else own.reshape(-1)
        writer, reader = (writer_table(tables, storage, "int32") for tables in (self.writer, self.reader))
        before = writer[chosen]
        clash = bool(((before != -1) & (before != own)).any())
        if access.what == "store":
            readers = reader[chosen]
            writer[chosen] = own
            clash = clash or bool((writer[chosen] != own).any()) or bool(((readers != -1) & (readers != own)).any())
        else:
            note_readers(reader, chosen, own)
        if clash:
            self.seen.unclear = "two programs go to the same element"

    def _tell(self, kind: str, plan: AccessPlan, grid: ProgramGrid, wrong: Any, **facts: Any) -> None:
        at = [int(one) for one in np.unravel_index(int(wrong.argmax()), wrong.shape)]
        program = grid.first + (at[0] if wrong.shape[0] > 1 else 0)
        place = self.launch.placed(program, tuple(at[1:]), wrong.shape[1:])
        several = wrong.any(axis=tuple(range(1, wrong.ndim)))
        self.seen.programs |= {grid.first + int(one) for one in np.flatnonzero(several)[:MOST_GUILTY]}
        count = int(wrong.sum()) * (grid.count if wrong.shape[0] == 1 else 1)
        tensor = plan.pointer.tensor if plan.pointer is not None else None
        if tensor is not None:
            facts |= {"argument": plan.access.argument, "buffer": tensor.name, "allocation": tensor.storage.name}
        self.seen.add({"kind": kind, "count": count, **facts, **self.launch.here(plan.access.line), **place})
