"""Which tensor the server takes each name of a config for.

From 26.05 on a name is looked up. In 26.03 and 26.04 it is not: where all names end in ``__`` and a number, the number
is the place; else the order of the config is, for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.model.serving_names import NameRow
from aotidoctor.triton.names import find_row

_NUMBERED = re.compile(r"(?:(?!__).)*__([0-9]*)", re.DOTALL)


def resolve(rows: Sequence[NameRow], names: Sequence[str]) -> tuple[NameRow | None, ...]:
    """The row of each name, None where the server finds none."""
    if all(row.forward is not None for row in rows):
        return tuple(find_row(rows, name) for name in names)
    slots = {row.slot: row for row in rows}
    return tuple(slots.get(place) for place in places(names))


def places(names: Sequence[str]) -> tuple[int, ...]:
    """The places that 26.03 and 26.04 make of names: what stands after the first ``__``, or the config's order."""
    found = [_NUMBERED.fullmatch(name) for name in names]
    # Nothing after __ is the number 0.
    numbers = [int(match[1] or 0) for match in found if match is not None]
    return tuple(numbers) if len(numbers) == len(names) else tuple(range(len(names)))


def is_numbered(names: Sequence[str]) -> bool:
    """Whether 26.03 and 26.04 go by the numbers in the names."""
    return all(_NUMBERED.fullmatch(name) for name in names)
