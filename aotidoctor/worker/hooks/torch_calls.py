"""Where libtorch keeps the address of a C function that it calls: the place to put one of ours in its stead."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path


def call_slot(function: str) -> int | None:
    """Address of the slot through which ``libtorch_cpu`` calls ``function``; None where it has none."""
    import torch

    from aotidoctor.worker.hooks.image import call_tables, loaded_libraries

    for path, base in loaded_libraries(Path(torch.__file__).parent / "lib"):
        if path.name.startswith("libtorch_cpu"):
            return _slot(f"{function}\0".encode(), *call_tables(base))
    return None


def _slot(wanted: bytes, table: bytes, symbols: int, strings: int, bias: int) -> int | None:
    """The relocation for the call, found by comparing names in the string table: there are some ten thousand."""
    for offset, info, _ in struct.iter_unpack("<QQq", table):
        name = ctypes.c_uint32.from_address(symbols + (info >> 32) * 24).value
        if ctypes.string_at(strings + name, len(wanted)) == wanted:
            return int(bias + offset)
    return None
