"""Emulate device memory: allocations, tensors, pointers; findings, values and deferred steps of a replay.

An allocation records which of its elements were written. Pointers are made up: that of argument ``k`` begins at ``k <<
52``. An address identifies its argument and, however far off it is, is never followed into real memory.

The first finding of a kind at a place represents all later ones. Steps that were not computed are stored in order, so
that their values can still be computed where an address depends on them.

What every launch and operator reads and writes is recorded as for a package that runs. The record has the parts of
``worker.values.match_values``: ``calls`` with the statistics of each tensor, the call that wrote it last, and, compared
with the program, whether any of its nodes has these values; ``outputs``; ``compared``; ``places``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from aotidoctor.model.record import record
from aotidoctor.worker.tensors import dtype_name
from aotidoctor.worker.values.follow_values import value_facts
from aotidoctor.worker.values.match_values import Candidates, watch_result


class EmulatedStorage:
    """One allocation.

    ``unit`` is the element size in bytes that ``written`` counts in; ``written`` is None where all of it was, else one
    flag an element. ``known`` is False once something that could not be carried out may have written to it.
    """

    def __init__(self, name: str, size: int, unit: int, *, written: bool) -> None:
        self.name = name
        self.size = size
        self.unit = max(unit, 1)
        # Padded, so that it can be viewed as elements of any size.
        self.tensor = torch.zeros(-(-size // 16) * 16 + 16, dtype=torch.uint8)
        self.bytes = self.tensor.numpy()
        self.written: Any = None if written else np.zeros(self.cells, dtype=bool)
        self.live = True
        self.known = True

    @property
    def cells(self) -> int:
        """The number of its units."""
        return -(-self.size // self.unit)

    def elements(self, dtype: Any) -> Any:
        """The bytes as a flat array of ``dtype`` (of NumPy)."""
        return self.bytes.view(dtype)

    def all_written(self) -> None:
        """Note that every element has a value."""
        self.written = None

    def unwritten(self, at: Any) -> Any:
        """Flags of the byte offsets ``at`` that were never written; None where all of it was written or is unknown."""
        return None if self.written is None or not self.known else ~self.written[at // self.unit]

    def mark(self, at: Any, size: int) -> None:
        """Note that elements of ``size`` bytes at the byte offsets ``at`` were written."""
        if self.written is None:
            return
        for step in range(0, size, self.unit):
            self.written[(at + step) // self.unit] = True


@record
class WrapperTensor:
    """A tensor of the wrapper: ``name`` is the wrapper's; sizes, strides and ``offset`` count elements."""

    name: str
    storage: EmulatedStorage
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(getattr(torch, self.dtype).itemsize)

    @property
    def start(self) -> int:
        """The byte offset of its first element in the allocation."""
        return self.offset * self.itemsize

    @property
    def extent(self) -> int:
        """Bytes from its first to the end of its last element."""
        return _reach(self.sizes, self.strides) * self.itemsize

    def facts_at(self, offset: int, size: int) -> dict[str, Any]:
        """Facts of an element of ``size`` bytes at the byte ``offset`` from its first element, and of the tensor."""
        layout = {"dtype": self.dtype, "sizes": list(self.sizes), "strides": list(self.strides)}
        extent = {"extent": self.extent // size, "extent_bytes": self.extent}
        return {"itemsize": size, "offset": offset // size, "offset_bytes": offset, **extent, **layout}

    def torch(self) -> Any:
        """The tensor as one of torch, on the same memory."""
        empty = torch.empty(0, dtype=getattr(torch, self.dtype))
        return empty.set_(self.storage.tensor.untyped_storage(), self.offset, self.sizes, self.strides)

    def has_unwritten(self) -> int:
        """The number of its elements that were never written."""
        if self.storage.written is None or not self.storage.known or 0 in self.sizes:
            return 0
        if self.storage.written.all():
            self.storage.all_written()
            return 0
        at = self._places()
        return int((~self.storage.written[at * self.itemsize // self.storage.unit]).sum())

    def mark(self) -> None:
        """Note that every element of it has a value."""
        if self.storage.written is not None and 0 not in self.sizes:
            self.storage.mark(self._places() * self.itemsize, self.itemsize)

    def _places(self) -> Any:
        at = np.array([self.offset], dtype=np.int64)
        for size, step in zip(self.sizes, self.strides, strict=True):
            at = (at[:, None] + np.arange(size, dtype=np.int64) * step).reshape(-1)
        return at


def device_copy(name: str, tensor: Any) -> WrapperTensor:
    """A copy of ``tensor`` in an allocation of its own that ends with its last element."""
    made = _allocate(name, dtype_name(tensor), tuple(tensor.shape), tuple(tensor.stride()), written=True)
    if 0 not in made.sizes:
        made.torch().copy_(tensor.detach())
    return made


def empty_storage(name: str, dtype: str, sizes: tuple[int, ...], strides: tuple[int, ...]) -> WrapperTensor:
    """A fresh allocation without any written element."""
    return _allocate(name, dtype, sizes, strides, written=False)


def _allocate(
    name: str, dtype: str, sizes: tuple[int, ...], strides: tuple[int, ...], *, written: bool
) -> WrapperTensor:
    itemsize = getattr(torch, dtype).itemsize
    storage = EmulatedStorage(name, _reach(sizes, strides) * itemsize, itemsize, written=written)
    return WrapperTensor(name=name, storage=storage, dtype=dtype, sizes=sizes, strides=strides)


def _reach(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last, with those between."""
    return 0 if 0 in sizes else sum((size - 1) * step for size, step in zip(sizes, strides, strict=True)) + 1


# Pointers.
_SPAN = 52
_MIDDLE = 1 << (_SPAN - 1)


@record
class Pointer:
    """An argument that is a pointer: ``name`` is the kernel's, ``tensor`` the wrapper's, ``itemsize`` of its type.

    ``whole``: it may go anywhere in the allocation, as on a GPU, and not in the tensor alone.
    """

    name: str
    number: int
    tensor: WrapperTensor | None
    itemsize: int
    whole: bool = False

    @property
    def bounds(self) -> tuple[int, int]:
        """The allowed byte offsets in the allocation: the first, and the one behind the last."""
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
    """The number of the pointer that an address was made from."""
    return address >> _SPAN


# Findings of one emulated run, in the order in which they happened.
# Of one run: every launch may add one for each of its accesses.
MOST = 100
MOST_TEXT = 300


@dataclass(slots=True)
class EmulationFindings:
    """Findings, what was not emulated and why, and the launches in order, each a JSON object."""

    findings: list[dict[str, Any]] = field(default_factory=list)
    not_emulated: dict[tuple[str, str], int] = field(default_factory=dict)
    launches: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0
    operators: int = 0
    lost: int = 0

    def add(self, kind: str, **facts: Any) -> None:
        """Add a finding, or count it where the same launch has one of that kind at that line and argument."""
        place = (kind, facts.get("launch"), facts.get("line"), facts.get("argument"), facts.get("buffer"))
        for known in self.findings:
            if (known["kind"], *(known.get(key) for key in ("launch", "line", "argument", "buffer"))) == place:
                known["count"] = known.get("count", 1) + facts.get("count", 1)
                return
        if len(self.findings) >= MOST:
            self.left_out += 1
            return
        self.findings.append({"kind": kind, **facts})

    def lose(self, what: str, why: str) -> None:
        """Note a statement or an output without which the package is not carried out as a whole."""
        self.lost += 1
        self.skip(what, why)

    def skip(self, what: str, why: str) -> None:
        """Note that ``what`` was not carried out, or not checked; repetitions are counted."""
        key = (what[:MOST_TEXT], why[:MOST_TEXT])
        self.not_emulated[key] = self.not_emulated.get(key, 0) + 1

    def result(self) -> dict[str, Any]:
        """All findings as JSON."""
        skipped = [{"what": what, "why": why, "times": times} for (what, why), times in self.not_emulated.items()]
        return {
            "findings": self.findings,
            "not_emulated": skipped[:MOST],
            "launches": self.launches,
            "left_out": self.left_out,
            "operators": self.operators,
            "lost": self.lost,
        }


# Findings about lanes: where the first of them is, and how many there are.
@record
class LaneFindings:
    """Add findings about lanes to ``found``; ``place`` gives line, program and lane of an index of a block.

    ``where`` and ``wrong`` are arrays of bool in the shape of a block, ``at`` are byte offsets in the allocation.
    """

    found: EmulationFindings
    place: Callable[[tuple[int, ...], tuple[int, ...]], dict[str, Any]]

    def refuse(self, pointer: Pointer, at: Any, wrong: Any, access: str, size: int) -> None:
        """Report lanes that go outside, to a misaligned address, or to memory that was freed."""
        tensor = pointer.tensor
        if tensor is None:
            return
        place = int(at[first_lane(wrong)])
        offset = place - tensor.start
        low, high = pointer.bounds
        outside = not low <= place <= high - size
        kind = "out-of-bounds" if outside else "misaligned"
        if not tensor.storage.live:
            kind = "use-after-free"
        self._add(kind, pointer, wrong, access=access, **tensor.facts_at(offset, size))

    def refuse_all(self, mask: Any, access: str, pointer: Pointer | None, size: int) -> None:
        """Report all lanes of an access through no pointer of the launch."""
        self._add("out-of-bounds", pointer, mask, access=access, itemsize=size, null=True)

    def report(self, kind: str, pointer: Pointer, at: Any, where: Any, **facts: Any) -> None:
        """Report any other finding about lanes inside the allocation."""
        tensor, size = pointer.tensor, pointer.itemsize
        if tensor is None:
            return
        facts |= {"offset": (int(at[first_lane(where)]) - tensor.start) // size, "extent": tensor.extent // size}
        self._add(kind, pointer, where, itemsize=size, **facts)

    def _add(self, kind: str, pointer: Pointer | None, where: Any, **facts: Any) -> None:
        tensor = pointer.tensor if pointer is not None else None
        facts |= {"argument": pointer.name if pointer is not None else None, "count": int(where.sum())}
        facts |= {"buffer": None} if tensor is None else {"buffer": tensor.name, "allocation": tensor.storage.name}
        self.found.add(kind, **facts, **self.place(first_lane(where), where.shape))


def first_lane(where: Any) -> tuple[int, ...]:
    """The index of the first lane that is marked."""
    return tuple(int(one) for one in np.unravel_index(int(where.argmax()), where.shape))


@record
class PendingStep:
    """A deferred launch or operator: ``carry_out`` runs it; the storages that it reads and writes."""

    carry_out: Callable[[], None]
    reads: tuple[EmulatedStorage, ...]
    writes: tuple[EmulatedStorage, ...]


@dataclass(slots=True)
class PendingSteps:
    """The steps that are deferred so far."""

    steps: list[PendingStep] = field(default_factory=list)

    def add(self, step: PendingStep) -> None:
        """Defer a step; what it writes counts as written."""
        self.steps.append(step)

    def is_left_out(self, storage: EmulatedStorage) -> bool:
        """Whether a deferred step would compute its values."""
        return any(one is storage for step in self.steps for one in step.writes)

    def fill(self, storages: Iterable[EmulatedStorage]) -> None:
        """Carry out the steps that these storages depend on, in order. Raises what the steps raise.

        Steps that read what one of these overwrites must go before it, and are carried out as well.
        """
        needed = list(storages)
        chosen: set[int] = set()
        grew = True
        while grew:
            grew = False
            for at in range(len(self.steps) - 1, -1, -1):
                step = self.steps[at]
                if at in chosen:
                    continue
                later = [self.steps[one] for one in chosen if one > at]
                overwritten = [one for other in later for one in other.writes]
                if _meet(step.writes, needed) or _meet(step.reads, overwritten):
                    chosen.add(at)
                    needed += step.reads
                    grew = True
        due = [step for at, step in enumerate(self.steps) if at in chosen]
        self.steps = [step for at, step in enumerate(self.steps) if at not in chosen]
        for step in due:
            step.carry_out()


def _meet(some: Iterable[EmulatedStorage], others: list[EmulatedStorage]) -> bool:
    return any(one is other for one in some for other in others)


# Values that launches and operators read and write. Of one run; more calls are counted.
MOST_CALLS = 4096
PROXY = "aoti_torch_proxy_executor_call_function"


@dataclass(slots=True, kw_only=True)
class FollowedCalls:
    """Values that calls read and write, for the calls so far. ``candidates`` are the values of the program."""

    candidates: Candidates
    calls: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0
    writers: dict[int, tuple[int, bool | None]] = field(default_factory=dict)
    # References, so that no other storage gets the same identity.
    storages: list[EmulatedStorage] = field(default_factory=list)

    def begin(self, symbol: str, read: Iterable[tuple[str, int, WrapperTensor]], argument: int | None = None) -> bool:
        """Add a call with the tensors that it reads: ``(name, position, tensor)``. False after too many calls."""
        if len(self.calls) >= MOST_CALLS:
            self.left_out += 1
            return False
        facts = []
        for name, position, tensor in read:
            if not tensor.storage.known or tensor.has_unwritten():
                continue
            number, agrees = self.writers.get(id(tensor.storage), (None, None))
            place = {"name": name, "position": position}
            facts.append({**place, **value_facts(tensor.torch()), "writer": number, "agrees": agrees})
        self.calls.append({"symbol": symbol, "argument": argument, "reads": facts, "writes": []})
        return True

    def end(self, written: Iterable[tuple[str, int, WrapperTensor]]) -> None:
        """Record what the last call wrote."""
        number = len(self.calls) - 1
        for name, position, tensor in written:
            if not tensor.storage.known or tensor.has_unwritten():
                continue
            values = tensor.torch()
            found = {"name": name, "position": position, **value_facts(values), **self.candidates.closest(values)}
            self.writers[id(tensor.storage)] = (number, found.get("agrees"))
            self.storages.append(tensor.storage)
            self.calls[-1]["writes"].append(found)

    def result(self, outputs: Iterable[tuple[str, WrapperTensor | None]]) -> dict[str, Any]:
        """The record as ``worker.values.observe`` reports it."""
        described = []
        for path, tensor in outputs:
            if tensor is not None:
                number = self.writers.get(id(tensor.storage), (None, None))[0]
                agrees = self.candidates.closest(tensor.torch()).get("agrees")
                described.append({"path": path, "writer": number, "agrees": agrees})
        notes = self.candidates.notes
        return watch_result(self.candidates, described, notes, calls=self.calls, left_out=self.left_out)
