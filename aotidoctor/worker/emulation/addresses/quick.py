"""The quick way: the addresses of a launch for the whole grid at once, without what the kernel computes.

Most accesses are settled by arithmetic on their bounds alone, whatever the number of lanes; the others are evaluated by
NumPy, some million lanes at a time. Values are read only where an address, a mask or an assertion is made of them. What
is found is carried out again in the interpreter, in the programs that it is about, before it is told.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from aotidoctor.worker.emulation.addresses.accesses import Ptr
from aotidoctor.worker.emulation.addresses.index_values import IndexValues
from aotidoctor.worker.emulation.addresses.nodes import Grid, Overflow, Unsliceable, constant, number
from aotidoctor.worker.emulation.addresses.settled import Plan, Settler
from aotidoctor.worker.emulation.addresses.slices import Slicer
from aotidoctor.worker.emulation.lanes.kernel_text import KernelText
from aotidoctor.worker.emulation.lanes.launch import Launch
from aotidoctor.worker.emulation.lanes.pointers import Pointer
from aotidoctor.worker.emulation.lanes.races import note_readers, table_of
from aotidoctor.worker.emulation.storage import Storage

# Lanes that are evaluated together.
TOGETHER = 1 << 20
# The block along a looped reduction.
_LONGEST_LOOP = 1 << 19
# Guilty programs that are carried out again.
MOST_GUILTY = 4


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the accesses of one launch are: by the kernel's argument, what is read and written; findings; lanes."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    found: list[dict[str, Any]] = field(default_factory=list)
    programs: set[int] = field(default_factory=set)
    lanes: int = 0
    unclear: str | None = None

    def add(self, facts: dict[str, Any]) -> None:
        """Keep a finding; more lanes of the same access are counted."""
        for known in self.found:
            if all(known.get(key) == facts.get(key) for key in ("kind", "line", "argument")):
                known["count"] += facts["count"]
                return
        self.found.append(facts)


@dataclass(slots=True, kw_only=True)
class Quick:
    """One launch looked at. ``fill`` makes the values of a storage real, before they are read."""

    launch: Launch
    fill: Callable[[Storage], None]
    seen: Seen = field(default_factory=Seen)
    pointers: dict[str, Pointer] = field(default_factory=dict)
    writer: dict[int, Any] = field(default_factory=dict)
    reader: dict[int, Any] = field(default_factory=dict)

    def look(self) -> Seen:
        """Check every access. Raises ``Unsliceable``, and ``CannotError`` where values are missing."""
        try:
            return self._look_through()
        finally:
            # The graphs refer to themselves, and stay for a while: not with the tensors.
            self.pointers.clear()

    def _look_through(self) -> Seen:
        launch = self.launch
        launch.prepare()
        self.pointers = launch.pointers()
        dtypes = {name: self._dtype(name) for name in self.pointers}
        values = IndexValues(pointers=self.pointers, fill=self.fill, writes=self.seen.writes)
        slicer = Slicer(
            grid=launch.grid, load=values.load, span=values.span, pointers=dtypes, names=self._names(),
        )  # fmt: skip
        slicer.run(_body(launch.kernel))
        for access in slicer.accesses:
            if access.what in ("load", "atomic"):
                self.seen.reads.add(access.argument)
            if access.what in ("store", "atomic"):
                self.seen.writes.add(access.argument)
        per_program = self._lanes()
        self.seen.lanes = per_program * prod(launch.grid) * len(slicer.accesses)
        plans = Settler(pointers=self.pointers, grid=launch.grid).plans(slicer.accesses)
        try:
            self._by_lane([plan for plan in plans if plan.needed], max(1, TOGETHER // per_program))
        except Overflow:
            self.seen.unclear = "a 32-bit index may overflow"
        return self.seen

    def _dtype(self, name: str) -> str:
        return self.launch.kernel.signature[name].removeprefix("*")

    def _names(self) -> dict[str, Any]:
        """The kernel's parameters."""
        launch, made = self.launch, dict[str, Any]()
        for name, kind in launch.kernel.signature.items():
            if kind.startswith("*"):
                made[name] = Ptr(argument=name, offset=constant(0))
            elif kind == "constexpr":
                value = launch.kernel.constants.get(name)
                if value is None and name.endswith("BLOCK") and not launch.kernel.custom:
                    value = self.launch.sizes.of(name, _LONGEST_LOOP)
                if isinstance(value, bool | int | float):
                    made[name] = constant(value)
                elif isinstance(value, str) or name in launch.kernel.constants:
                    made[name] = value
            else:
                made[name] = number(launch.arguments[name], kind)
        return made

    def _lanes(self) -> int:
        """Lanes of one program."""
        lanes = 1
        for name in ("XBLOCK", "YBLOCK", "ZBLOCK", "R0_BLOCK", "R1_BLOCK"):
            fixed = self.launch.sizes.fixed(name, 0)
            if fixed or name in self.launch.kernel.signature:
                lanes *= fixed or self.launch.sizes.of(name, _LONGEST_LOOP)
        for name, value in self.launch.kernel.constants.items():
            if "BLOCK" in name and isinstance(value, int) and value > 0:
                lanes *= value
        return lanes

    def _by_lane(self, plans: list[Plan], programs: int) -> None:
        total = prod(self.launch.grid) if plans else 0
        for first in range(0, total, programs):
            grid = Grid(sizes=self.launch.grid, first=first, count=min(programs, total - first))
            for plan in plans:
                if plan.access.what == "assert":
                    self._assert(plan, grid)
                else:
                    self._look(plan, grid)

    def _assert(self, plan: Plan, grid: Grid) -> None:
        if plan.access.mask is None:
            return
        wrong = ~plan.access.mask.array(grid).astype(bool)
        if wrong.any():
            self._tell("device-assert", plan, grid, wrong, message=plan.access.message[:300])

    def _look(self, plan: Plan, grid: Grid) -> None:
        """Bounds, first use, marks and clashes of one access, lane by lane."""
        import numpy as np

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
                self._astray(plan, grid, index, outside)
                good = mask & ~outside
            if tensor.start % size and good.any():
                self.seen.unclear = "an address may be misaligned"
        if not good.any():
            return
        if not good.all():
            index = np.where(good, index, 0)
        cells = (index * size + tensor.start) // tensor.storage.unit
        self._note(plan, grid, cells, good)

    def _note(self, plan: Plan, grid: Grid, cells: Any, good: Any) -> None:
        """What is written, and who wrote it."""
        import numpy as np

        if plan.pointer is None or plan.pointer.tensor is None:
            return
        storage, access = plan.pointer.tensor.storage, plan.access
        if plan.fresh and storage.written is not None:
            never = ~storage.written[cells] & good
            if never.any():
                self._tell("uninitialized", plan, grid, never)
        chosen = cells[good] if not good.all() else cells.reshape(-1)
        if plan.mark and storage.written is not None:
            unit = storage.unit
            for step in range(0, plan.pointer.itemsize, unit):
                storage.written[chosen + step // unit] = True
        if not plan.table:
            return
        own = np.broadcast_to(
            (np.arange(grid.count, dtype=np.int32) + grid.first).reshape((-1,) + (1,) * (cells.ndim - 1)), cells.shape
        )
        own = own[good] if not good.all() else own.reshape(-1)
        writer, reader = (table_of(tables, storage, "int32") for tables in (self.writer, self.reader))
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

    def _astray(self, plan: Plan, grid: Grid, index: Any, outside: Any) -> None:
        import numpy as np

        pointer = plan.pointer
        if pointer is None or pointer.tensor is None:
            return
        tensor, size = pointer.tensor, pointer.itemsize
        at = np.unravel_index(int(outside.argmax()), outside.shape)
        offset = int(index[at])
        self._tell(
            "out-of-bounds" if tensor.storage.live else "use-after-free", plan, grid, outside,
            access=plan.access.what, itemsize=size, offset=offset, offset_bytes=offset * size,
            extent=tensor.extent // size, extent_bytes=tensor.extent, dtype=tensor.dtype, sizes=list(tensor.sizes),
            strides=list(tensor.strides),
        )  # fmt: skip

    def _tell(self, kind: str, plan: Plan, grid: Grid, wrong: Any, **facts: Any) -> None:
        import numpy as np

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


def _body(kernel: KernelText) -> list[ast.stmt]:
    for node in kernel.module.body:
        if isinstance(node, ast.FunctionDef) and node.name == kernel.name:
            return node.body
    raise Unsliceable("its function is not there")
