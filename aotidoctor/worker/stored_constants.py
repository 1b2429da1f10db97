"""Constants of a package as its library has them in its file, one at a time: a second container would copy them all.

The parent knows from the package's source how they lie: one after the other between two symbols of the library. Where
that does not hold (other names, other sizes), or the library is none of this process, there is nothing to be read here.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import StoredConstant

# The last one may end without its padding.
_PADDING = 64
_SYMBOLS = ("_binary_constants_bin_start", "_binary_constants_bin_end")
_LINE = re.compile(rb"([0-9a-f]{1,16})-([0-9a-f]{1,16}) \S{4} ([0-9a-f]{1,16}) ")


class StoredConstants(Mapping[str, Any]):
    """Original name -> tensor, which is read anew each time that it is asked for."""

    def __init__(self, library: Path, begin: int, rows: Mapping[str, tuple[int, StoredConstant]]) -> None:
        self._library = library
        self._begin = begin
        self._rows = rows

    def __len__(self) -> int:
        """How many there are."""
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        """Their names, as they lie."""
        return iter(self._rows)

    def __getitem__(self, name: str) -> Any:
        """The constant in memory of its own. Raises OSError where the file is not what it was."""
        import torch

        begin, row = self._rows[name]
        dtype = getattr(torch, row.dtype)
        if not row.size:
            return torch.empty_strided(row.shape, row.stride, dtype=dtype)
        storage = torch.empty(row.size, dtype=torch.uint8)
        with self._library.open("rb", buffering=0) as file:
            file.seek(self._begin + begin)
            # Straight into the tensor: nothing is held twice.
            room = memoryview((ctypes.c_char * row.size).from_address(storage.data_ptr())).cast("B")
            while room:
                count = file.readinto(room)
                if not count:
                    raise OSError(f"{self._library} ends within the constant {name}")
                room = room[count:]
        whole = storage[: row.size // dtype.itemsize * dtype.itemsize].view(dtype)
        return whole.as_strided(row.shape, row.stride, row.offset)


def stored_constants(
    library: Path, names: Collection[str], told: Sequence[StoredConstant] | None
) -> StoredConstants | None:
    """What ``library``, which is loaded, holds; None where it cannot be read like that.

    ``told`` is how the constants lie, ``names`` are the original names that the loaded model gives.
    """
    if told is None or not set(names) >= {row.name for row in told}:
        return None
    rows: dict[str, tuple[int, StoredConstant]] = {}
    at = 0
    for row in told:
        # Of two under one name the container hands out the first.
        rows.setdefault(row.name, (at, row))
        at += row.size
    found = _place(library)
    if found is None or not at - _PADDING < found[1] < at + _PADDING:
        return None
    return StoredConstants(library, found[0], rows)


def _place(library: Path) -> tuple[int, int] | None:
    """Where in the file the constants begin, and how many bytes they are."""
    try:
        loaded = ctypes.CDLL(str(library), mode=os.RTLD_NOW)
        start, end = (ctypes.addressof(ctypes.c_char.in_dll(loaded, symbol)) for symbol in _SYMBOLS)
        lines = Path("/proc/self/maps").read_bytes().splitlines()
    except (OSError, ValueError):
        return None
    for line in lines:
        match = _LINE.match(line)
        low, high, offset = (int(number, 16) for number in match.groups()) if match is not None else (0, 0, 0)
        if low <= start < high:
            return (offset + start - low, end - start) if end <= high else None
    return None
