"""What an address points to, in words, from lines of /proc/PID/maps."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.model.record import record

_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+ *(.*)")
# A null pointer with an offset: the first page, and some more that Linux never maps.
_NULL_PAGE = 1 << 16
_NEAR_STACK = 1 << 20
_NEAR = 1 << 28
# Linux says so (SI_KERNEL) for addresses that the processor cannot even form, and gives none.
_NO_ADDRESS = 128


@record
class Region:
    """One mapping, ``high`` exclusive. ``perms`` are like ``r-xp``; ``path`` may be ``[heap]``, or empty: anonymous."""

    low: int
    high: int
    perms: str
    path: str

    @property
    def name(self) -> str:
        """For a sentence."""
        match self.path:
            case "":
                return "an anonymous mapping"
            case "[heap]":
                return "the heap"
            case "[stack]":
                return "the stack"
            case path:
                return path.rpartition("/")[2]


def read_regions(text: str) -> tuple[Region, ...]:
    """The lines in order of address; what is no such line is left out."""
    found = (_LINE.match(line) for line in text.splitlines())
    regions = (
        Region(low=int(one[1], 16), high=int(one[2], 16), perms=one[3], path=one[4].strip()) for one in found if one
    )
    return tuple(sorted(regions, key=lambda region: region.low))


def region_of(address: int, regions: Sequence[Region]) -> Region | None:
    """The mapping that holds the address."""
    return next((region for region in regions if region.low <= address < region.high), None)


def fault_target(address: int, code: int, stack_pointer: int | None, regions: Sequence[Region]) -> str:
    """What lies at the address of a memory fault; ``code`` is the kernel's ``si_code``."""
    if code == _NO_ADDRESS:
        return "no possible address: a pointer that was overwritten or never set"
    if address < _NULL_PAGE:
        return "the null page: a null pointer" + (f" plus {address} bytes" if address else "")
    inside = region_of(address, regions)
    if _overflowed(address, inside, stack_pointer, regions):
        return "below the end of the stack: it has overflowed"
    if inside is not None:
        return f"inside {inside.name}, which allows {inside.perms[:3]}"
    return _beside(address, regions)


def _overflowed(address: int, inside: Region | None, stack_pointer: int | None, regions: Sequence[Region]) -> bool:
    """Close to the stack pointer, and not on pages that can be written to."""
    if stack_pointer is None or abs(address - stack_pointer) > _NEAR_STACK:
        return False
    above = next((region for region in regions if region.high > address and "w" in region.perms), None)
    below_stack = above is not None and above.low <= stack_pointer + _NEAR_STACK
    return below_stack and (inside is None or "w" not in inside.perms)


def _beside(address: int, regions: Sequence[Region]) -> str:
    before = max((region for region in regions if region.high <= address), key=lambda one: one.high, default=None)
    after = min((region for region in regions if region.low > address), key=lambda one: one.low, default=None)
    past = address - before.high if before is not None else _NEAR
    short = after.low - address if after is not None else _NEAR
    if before is not None and past < _NEAR and past <= short:
        how_far = f"{past} bytes" if past else "right"
        return f"unmapped, {how_far} beyond the end of {before.name}"
    if after is not None and short < _NEAR:
        return f"unmapped, {short} bytes before the start of {after.name}"
    return "unmapped, with nothing near"
