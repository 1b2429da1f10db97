"""What one generated kernel does with the elements it reads: its bound checks, divisions, accesses and stores."""

from __future__ import annotations

from dataclasses import dataclass, field

from aotidoctor.localize.blame.computed import Loop, Value
from aotidoctor.model.record import record


@record
class Check:
    """A bound check. ``variable`` and ``bound`` are the words of its message; ``line`` counts in the member.

    ``mask`` is true where the check counts, None where it counts everywhere.
    """

    variable: str
    bound: str
    line: int
    value: Value
    limit: Value
    mask: Value | None
    loops: tuple[Loop, ...]


@record
class Division:
    """A division by ``divisor``; ``function`` is the operator or the function that divides."""

    function: str
    divisor: Value
    line: int
    loops: tuple[Loop, ...]


@record
class Store:
    """``value`` is written to offset ``at`` of ``parameter``."""

    parameter: str
    at: Value
    value: Value
    loops: tuple[Loop, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """A read or a write at offset ``at`` of ``parameter``."""

    parameter: str
    at: Value
    loops: tuple[Loop, ...]


@dataclass(slots=True)
class Flow:
    """All of it, in the order of the text."""

    checks: list[Check] = field(default_factory=list)
    divisions: list[Division] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
