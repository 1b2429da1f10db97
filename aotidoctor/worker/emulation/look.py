"""One launch by the quick way, and in full where that is not enough."""

from __future__ import annotations

import time
from dataclasses import replace
from math import prod

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.addresses.nodes import Unsliceable
from aotidoctor.worker.emulation.addresses.quick import MOST_GUILTY, Quick, Seen
from aotidoctor.worker.emulation.found import Found
from aotidoctor.worker.emulation.lanes.launch import Launch, TooLong, alarm
from aotidoctor.worker.emulation.pending import Pending, Step
from aotidoctor.worker.emulation.storage import Storage, Tensor
from aotidoctor.worker.emulation.variables import CannotError

# The programs on either side of a guilty one that are carried out again with it.
_AROUND = 1


def _guilty(seen: Seen, grid: tuple[int, int, int]) -> list[int]:
    """The programs to carry out again: those that were found, the first ones, and their neighbours."""
    total = prod(grid)
    chosen = sorted(seen.programs)[:MOST_GUILTY]
    return sorted({at for one in chosen for at in range(one - _AROUND, one + _AROUND + 1) if 0 <= at < total})


@record
class Looked:
    """How a launch went: its accesses times its lanes, and why it was carried out in full (None: it was not)."""

    lanes: int
    why: str | None = None


def look(launch: Launch, pending: Pending) -> Looked:
    """Check a launch by the quick way, and carry it out in full where that is not enough.

    Raises ``TooLong``, and whatever the interpreter raises.
    """
    started = time.monotonic()
    quick = Quick(launch=launch, fill=lambda storage: pending.fill([storage]))
    marks = {id(one): (one, None if one.written is None else one.written.copy()) for one in _storages(launch)}
    try:
        with alarm(launch.seconds):
            seen = quick.look()
        why = seen.unclear or (None if _is_so(launch, seen) else "findings must be examined in full")
    except Unsliceable as error:
        seen, why = quick.seen, str(error)
    except (TooLong, CannotError):
        raise
    except Exception as error:
        # Not worth more than the time that the full way takes.
        seen, why = quick.seen, f"{type(error).__name__}: {error}"[:200]
    if why is None:
        pending.add(_step(launch, seen))
        for one in seen.found:
            launch.found.add(one.pop("kind"), **one)
        return Looked(lanes=seen.lanes)
    for storage, written in marks.values():
        storage.written = written
    launch.seconds -= time.monotonic() - started
    in_full(launch, pending)
    return Looked(lanes=seen.lanes, why=why)


def in_full(launch: Launch, pending: Pending) -> None:
    """Carry a launch out with the values of its arguments. Raises what the interpreter raises."""
    pending.fill(_storages(launch))
    launch.run()


def _storages(launch: Launch) -> list[Storage]:
    return [one.storage for one in launch.arguments.values() if isinstance(one, Tensor)]


def _step(launch: Launch, seen: Seen) -> Step:
    """The launch as it would be carried out later, for its values alone."""

    def of(names: set[str]) -> tuple[Storage, ...]:
        given = [launch.arguments.get(name) for name in sorted(names)]
        return tuple(one.storage for one in given if isinstance(one, Tensor))

    later = replace(launch, found=Found())
    return Step(carry_out=lambda: _alive(later), reads=of(seen.reads), writes=of(seen.writes))


def _alive(launch: Launch) -> None:
    """Carry it out, with memory that was freed since."""
    storages = [(one, one.live, one.written) for one in _storages(launch)]
    for storage, _, _ in storages:
        storage.live, storage.written = True, None
    try:
        launch.run()
    finally:
        for storage, live, written in storages:
            storage.live, storage.written = live, written


def _is_so(launch: Launch, seen: Seen) -> bool:
    """Whether the interpreter finds the same in the guilty programs; what it says of the place is kept."""
    if not seen.found:
        return True
    again = replace(launch, found=Found(), only=_guilty(seen, launch.grid), dry=True)
    again.run()
    told = {(one["kind"], one.get("line"), one.get("argument")): one for one in again.found.findings}
    for one in seen.found:
        same = told.get((one["kind"], one.get("line"), one.get("argument")))
        if same is None:
            return False
        if same.get("program") == one.get("program"):
            one["lane"] = same.get("lane")
    return True
