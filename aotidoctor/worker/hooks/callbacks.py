"""A Python function before each hooked call, with the call's integer arguments.

The function runs on the thread of the call, before it, and sees all that earlier calls have written. What it raises is
printed by ctypes and goes no further: nothing may unwind through compiled frames.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aotidoctor.worker.hooks.slots import Slot, find_slots, install, restore
from aotidoctor.worker.hooks.stubs import STACK_AT, Machine

# Kept for the life of the process: stubs jump to them.
_kept: list[Any] = []


class Call:
    """One call about to be made: ``symbol``, and its integer (or pointer) arguments by index."""

    def __init__(self, symbol: str, machine: Machine, saved: int) -> None:
        self.symbol = symbol
        self._machine = machine
        self._saved = saved

    def word(self, index: int) -> int:
        """Integer argument number ``index`` from 0, as an unsigned 64-bit value. Not checked against the signature."""
        if index < self._machine.integers:
            return ctypes.c_uint64.from_address(self._saved + 8 * index).value
        stack = ctypes.c_uint64.from_address(self._saved + STACK_AT).value
        return ctypes.c_uint64.from_address(stack + 8 * (index - self._machine.integers)).value

    def integer(self, index: int) -> int:
        """The same as a signed 32-bit ``int``."""
        return ctypes.c_int32(self.word(index) & 0xFFFFFFFF).value


class Watch:
    """Installed hooks; ``stop`` takes them away."""

    def __init__(self, slots: list[Slot]) -> None:
        self._slots = slots

    def stop(self) -> None:
        """Calls are as they were."""
        restore(self._slots)
        self._slots = []


def watch(directory: Path, symbols: re.Pattern[str], before: Callable[[Call], None]) -> Watch:
    """Call ``before`` ahead of each call to a symbol that ``symbols`` matches, in the libraries below ``directory``.

    Raises:
        HooksUnavailableError: as ``find_slots``.
    """
    machine, slots = find_slots(directory, symbols)

    def enter(number: int, saved: int) -> None:
        before(Call(slots[number].symbol, machine, saved))

    function = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint64)(enter)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    _kept.append(function)
    install(slots, lambda number, slot: machine.watch_stub(callback=address, number=number, target=slot.target))
    return Watch(slots)
