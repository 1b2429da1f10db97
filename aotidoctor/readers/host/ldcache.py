"""``/etc/ld.so.cache``: where the dynamic loader finds a library by name. Layout as in glibc's ``dl-cache.h``."""

from __future__ import annotations

import struct
from pathlib import Path

_NEW_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_MAGIC = b"ld.so-1.7.0"
_HEADER = 48
_ENTRY = struct.Struct("=iIIIQ")


def read_cache(path: str = "/etc/ld.so.cache") -> dict[str, tuple[str, ...]]:
    """Library name → files, best first. Empty when there is no cache or it is of an unknown format."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return {}
    base = data.find(_NEW_MAGIC) if data.startswith((_NEW_MAGIC, _OLD_MAGIC)) else -1
    if base < 0 or len(data) < base + _HEADER:
        return {}
    # Offsets of strings count from the new header, also when an old cache stands in front of it.
    data = data[base:]
    count = struct.unpack_from("=I", data, len(_NEW_MAGIC))[0]
    entries = data[_HEADER : _HEADER + count * _ENTRY.size]
    if len(entries) < count * _ENTRY.size:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for _flags, key, value, _os, _hwcap in _ENTRY.iter_unpack(entries):
        name = _text(data, key)
        found[name] = (*found.get(name, ()), _text(data, value))
    return found


def _text(data: bytes, offset: int) -> str:
    return data[offset : data.find(b"\0", offset)].decode("utf-8", "replace")
