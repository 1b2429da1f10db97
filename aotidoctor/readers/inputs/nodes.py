"""What a pickle says, as data: lists and dicts as entries, globals as names, calls as records. Nothing is called.

Dicts and sets keep their entries in a list: nothing is hashed, so crafted collisions cost nothing.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from aotidoctor.model.record import record

Value: TypeAlias = (
    "bool | int | float | str | bytes | tuple[Value, ...] | Items | Entries | Global | Call | Persistent | None"
)


@record(kw_only=False)
class Global:
    """A global by name, as Python 3 spells it (``torch.FloatStorage``)."""

    name: str


@record(kw_only=False, frozen=False, eq=False)
class Items:
    """A list, set or frozenset (``type``)."""

    type: str
    items: list[Value] = field(default_factory=list)


@record(kw_only=False, frozen=False, eq=False)
class Entries:
    """A dict: entries in the order of the pickle, repeated keys included."""

    entries: list[tuple[Value, Value]] = field(default_factory=list)


@record(kw_only=False, frozen=False, eq=False)
class Call:
    """``function(*args)``, then what was done to the result: items and entries added, state set (the last one).

    ``new`` tells ``function.__new__(function, *args)`` from a plain call: so are namedtuples saved.
    """

    function: Value
    args: tuple[Value, ...]
    items: list[Value] = field(default_factory=list)
    entries: list[tuple[Value, Value]] = field(default_factory=list)
    state: Value = None
    new: bool = False

    @property
    def name(self) -> str:
        """The called global, ``""`` when something else is called."""
        return self.function.name if isinstance(self.function, Global) else ""


@record(kw_only=False, frozen=False, eq=False)
class Persistent:
    """A persistent id: in torch files, a storage."""

    id: Value
