"""Where libtorch keeps the address of a C function that it calls: the place to put one of ours in its stead."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# Kept for the life of the process: libtorch calls through them.
_kept: list[Any] = []


def call_slot(function: str) -> int | None:
    """Address of the slot through which ``libtorch_cpu`` calls ``function``; None where it has none."""
    import torch

    from aotidoctor.worker.hooks.image import call_tables, loaded_libraries

    for path, base in loaded_libraries(Path(torch.__file__).parent / "lib"):
        if path.name.startswith("libtorch_cpu"):
            return _slot(f"{function}\0".encode(), *call_tables(base))
    return None


def call_around(slot: int, prototype: Any, around: Callable[..., Any]) -> None:
    """Let libtorch call ``around(function, ...)`` instead of the C function that ``slot`` leads to.

    Raises:
        HooksUnavailableError: as ``slots.point``.
    """
    from aotidoctor.worker.hooks.slots import point

    callback = prototype(partial(around, prototype(ctypes.c_uint64.from_address(slot).value)))
    _kept.append(callback)
    point({slot: ctypes.cast(callback, ctypes.c_void_p).value or 0})


def _slot(wanted: bytes, table: bytes, symbols: int, strings: int, bias: int) -> int | None:
    """The relocation for the call, found by comparing names in the string table: there are some ten thousand."""
    for offset, info, _ in struct.iter_unpack("<QQq", table):
        name = ctypes.c_uint32.from_address(symbols + (info >> 32) * 24).value
        if ctypes.string_at(strings + name, len(wanted)) == wanted:
            return int(bias + offset)
    return None
