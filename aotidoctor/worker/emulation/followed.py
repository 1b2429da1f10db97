"""What every launch and operator of a replay reads and writes, as the watch of a package that runs has it.

The record has the parts of ``worker.values.observe``: ``calls`` with the statistics of each tensor, who wrote it last,
and, held against the program, whether any of its nodes has these values; ``outputs``; ``compared``; ``places``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.worker.emulation.storage import Storage, Tensor
from aotidoctor.worker.values.candidates import Candidates

# Of one run; more calls are counted.
MOST_CALLS = 4096
PROXY = "aoti_torch_proxy_executor_call_function"


@dataclass(slots=True, kw_only=True)
class Followed:
    """The calls so far. ``candidates`` are the values of the program."""

    candidates: Candidates
    calls: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0
    writers: dict[int, tuple[int, bool | None]] = field(default_factory=dict)
    # Held, so that no other storage gets the same identity.
    storages: list[Storage] = field(default_factory=list)

    def begin(self, symbol: str, read: Iterable[tuple[str, int, Tensor]], argument: int | None = None) -> bool:
        """A call with the tensors that it reads: ``(name, position, tensor)``. False where there are too many calls."""
        if len(self.calls) >= MOST_CALLS:
            self.left_out += 1
            return False
        facts = []
        for name, position, tensor in read:
            if not tensor.storage.known or tensor.has_unwritten():
                continue
            number, agrees = self.writers.get(id(tensor.storage), (None, None))
            place = {"name": name, "position": position}
            facts.append({**place, **_facts(tensor), "writer": number, "agrees": agrees})
        self.calls.append({"symbol": symbol, "argument": argument, "reads": facts, "writes": []})
        return True

    def end(self, written: Iterable[tuple[str, int, Tensor]]) -> None:
        """What the call wrote."""
        number = len(self.calls) - 1
        for name, position, tensor in written:
            if not tensor.storage.known or tensor.has_unwritten():
                continue
            found = {"name": name, "position": position, **_facts(tensor), **self.candidates.closest(tensor.torch())}
            self.writers[id(tensor.storage)] = (number, found.get("agrees"))
            self.storages.append(tensor.storage)
            self.calls[-1]["writes"].append(found)

    def result(self, outputs: Iterable[tuple[str, Tensor | None]]) -> dict[str, Any]:
        """As ``worker.values.observe`` reports it."""
        told = []
        for path, tensor in outputs:
            if tensor is not None:
                number = self.writers.get(id(tensor.storage), (None, None))[0]
                told.append(
                    {"path": path, "writer": number, "agrees": self.candidates.closest(tensor.torch()).get("agrees")}
                )
        return {
            "problem": None,
            "calls": self.calls,
            "left_out": self.left_out,
            "outputs": told,
            "notes": self.candidates.notes,
            "compared": True,
            "places": self.candidates.places(),
            "decomposition_differs": self.candidates.decomposition_differs,
        }


def _facts(tensor: Tensor) -> dict[str, Any]:
    from aotidoctor.worker.describe import describe

    facts = describe("", tensor.torch(), values=True)
    del facts["path"]
    return facts
