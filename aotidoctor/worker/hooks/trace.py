"""The call trace: each hooked call leaves a record in a file that is mapped into memory.

The file outlives the process whatever ends it, SIGKILL included, and writing to it is no system call: a traced call
costs some nanoseconds. What the records mean is told over the channel (``names``, ``ticks_per_s``, ``slots``).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path
from typing import Any

from aotidoctor.model.child_protocol import TRACE_FILE
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.hooks.slots import HooksUnavailableError, Slot, find_slots, install
from aotidoctor.worker.hooks.stubs import HEADER_BYTES, RECORDS, RING_BYTES, Machine

_CALIBRATION_S = 0.001
# Kept for the life of the process: stubs write through it.
_kept: list[Any] = []


def start_trace(directory: Path, channel: Channel) -> None:
    """Trace the libraries below ``directory`` from now on; where that cannot be, ``trace.problem`` says why."""
    try:
        machine, slots = find_slots(directory)
        ring = _ring(channel.run_dir / TRACE_FILE)
        names = sorted({slot.symbol for slot in slots})
        numbers = {name: number for number, name in enumerate(names)}
        ticks = _ticks_per_second(machine, ring)

        def stub(_: int, slot: Slot) -> bytes:
            return machine.trace_stub(ring=ring, number=numbers[slot.symbol], target=slot.target)

        install(slots, stub)
    except (HooksUnavailableError, OSError) as error:
        channel.put(trace={"problem": str(error)})
        return
    layout = {"header": HEADER_BYTES, "records": RECORDS}
    channel.put(trace={"names": names, "slots": len(slots), "ticks_per_s": ticks, **layout})


def traced_calls() -> int | None:
    """How many calls were traced so far; None where nothing is traced."""
    return ctypes.c_uint64.from_buffer(_kept[-1][0]).value if _kept else None


def _ring(path: Path) -> int:
    """Address of a fresh ring that is kept in ``path``."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, RING_BYTES)
        memory = mmap.mmap(fd, RING_BYTES)
    finally:
        os.close(fd)
    view = (ctypes.c_char * RING_BYTES).from_buffer(memory)
    _kept.append((memory, view))
    return ctypes.addressof(view)


def _ticks_per_second(machine: Machine, ring: int) -> float:
    """Ticks of the stubs' clock in a second, measured by a stub that jumps to a function which does nothing."""
    nothing = ctypes.CFUNCTYPE(None)(lambda: None)
    target = ctypes.cast(nothing, ctypes.c_void_p).value or 0
    holder = ctypes.c_uint64(target)
    slot = Slot(address=ctypes.addressof(holder), symbol="", target=target)
    install([slot], lambda _, one: machine.trace_stub(ring=ring, number=0, target=one.target))
    call = ctypes.CFUNCTYPE(None)(holder.value)
    call()
    first, began = _newest(ring), time.perf_counter()
    time.sleep(_CALIBRATION_S)
    call()
    second, ended = _newest(ring), time.perf_counter()
    ctypes.c_uint64.from_address(ring).value = 0
    return (second - first) / (ended - began)


def _newest(ring: int) -> int:
    count = ctypes.c_uint64.from_address(ring).value
    return ctypes.c_uint64.from_address(ring + HEADER_BYTES + 16 * ((count - 1) % RECORDS) + 8).value
