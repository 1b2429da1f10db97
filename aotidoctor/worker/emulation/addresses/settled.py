"""What is settled of each access by arithmetic on its bounds, whatever the number of lanes; what is left to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.worker.emulation.addresses.accesses import Access
from aotidoctor.worker.emulation.addresses.forms import Form, bounds_of, form_of
from aotidoctor.worker.emulation.addresses.nodes import Node
from aotidoctor.worker.emulation.dtypes import Interval
from aotidoctor.worker.emulation.lanes.pointers import Pointer


@dataclass(slots=True, kw_only=True)
class Plan:
    """What is to be done for one access by lane; ``known`` are the ranges that its mask gives."""

    access: Access
    pointer: Pointer | None
    known: Mapping[int, Interval]
    bounds: bool = False
    fresh: bool = False
    mark: bool = False
    table: bool = False

    @property
    def needed(self) -> bool:
        """Whether anything is."""
        return self.bounds or self.fresh or self.mark or self.table


@dataclass(slots=True, kw_only=True)
class Settler:
    """Goes through the accesses of a launch in the order of its text.

    ``later`` are the storages whose marks of first use wait for their lanes.
    """

    pointers: Mapping[str, Pointer]
    grid: tuple[int, int, int]
    later: set[int] = field(default_factory=set)

    def plans(self, accesses: list[Access]) -> list[Plan]:
        """One for each access; what is whole and fresh is marked as written at once."""
        made: list[Plan] = []
        forms: list[Form | None] = []
        touched: dict[int, list[int]] = {}
        for access in accesses:
            known, nodes, complete = bounds_of(access.mask)
            plan = Plan(access=access, pointer=self.pointers.get(access.argument), known=known)
            form = None
            if access.what == "assert":
                plan.bounds = access.mask is None or access.mask.truth({}) is not True
            elif any(low > high for low, high in known.values()):
                # No lane goes there.
                pass
            else:
                form = self._plan(plan, nodes, complete)
                tensor = plan.pointer.tensor if plan.pointer is not None else None
                if tensor is not None and access.what != "atomic":
                    touched.setdefault(id(tensor.storage), []).append(len(made))
            made.append(plan)
            forms.append(form)
        for numbers in touched.values():
            if not any(made[at].access.what == "store" for at in numbers):
                continue
            keys = {_place(made[at], forms[at]) for at in numbers}
            if len(keys) > 1 or None in keys:
                # One lane may go where another goes.
                for at in numbers:
                    made[at].table = True
        return made

    def _plan(self, plan: Plan, nodes: Mapping[int, Node], complete: bool) -> Form | None:
        """Settle what can be settled without looking at lanes, and note the rest."""
        access, pointer = plan.access, plan.pointer
        if access.index is None or pointer is None or pointer.tensor is None:
            plan.bounds = True
            return None
        tensor, size = pointer.tensor, pointer.itemsize
        reach = access.index.interval(plan.known)
        inside = reach is not None and reach[0] >= 0 and (reach[1] + 1) * size <= tensor.extent
        plan.bounds = not inside or tensor.start % size != 0 or not tensor.storage.live
        form = form_of(access.index, plan.known, nodes, self.grid) if reach is not None and complete else None
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


def _place(plan: Plan, form: Form | None) -> tuple[Any, ...] | None:
    """The same for accesses that go, lane by lane, to the same bytes; None where that is not known."""
    if form is None or plan.pointer is None or plan.pointer.tensor is None:
        return None
    return plan.pointer.tensor.start, plan.pointer.itemsize, form.key
