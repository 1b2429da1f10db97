"""What was not computed, in order, so that values can be had after all where an address is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.storage import Storage


@record
class Step:
    """A launch or an operator that was left out: ``carry_out`` does it; what it reads and writes."""

    carry_out: Callable[[], None]
    reads: tuple[Storage, ...]
    writes: tuple[Storage, ...]


@dataclass(slots=True)
class Pending:
    """The steps that were left out so far."""

    steps: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Leave a step out; what it writes counts as written."""
        self.steps.append(step)

    def is_left_out(self, storage: Storage) -> bool:
        """Whether its values are not there."""
        return any(one is storage for step in self.steps for one in step.writes)

    def fill(self, storages: Iterable[Storage]) -> None:
        """Carry out what these storages follow from, in order. Raises what the steps raise."""
        chosen = self._needed(list(storages))
        left: list[Step] = []
        due: list[Step] = []
        for at, step in enumerate(self.steps):
            (due if at in chosen else left).append(step)
        self.steps = left
        for step in due:
            step.carry_out()

    def _needed(self, wanted: list[Storage]) -> set[int]:
        """The steps behind these storages, and those that must go before them: they read what is overwritten."""
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
                if _meet(step.writes, wanted) or _meet(step.reads, overwritten):
                    chosen.add(at)
                    wanted += step.reads
                    grew = True
        return chosen


def _meet(some: Iterable[Storage], others: list[Storage]) -> bool:
    return any(one is other for one in some for other in others)
