"""Builds zip archives byte by byte, so that every field of every header can lie."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Part:
    """One member. ``None`` for a field means: the honest value."""

    name: str | bytes
    data: bytes = b""
    deflate: bool = False
    method: int | None = None
    size: int | None = None
    compressed: int | None = None
    crc: int | None = None
    mode: int = 0o100600
    flags: int = 0
    local_name: str | bytes | None = None
    local_crc: int | None = None
    local_magic: bytes = b"PK\3\4"
    offset: int | None = None
    extra: bytes = b""
    zip64: bool = field(default=False)


def build_zip(
    parts: Iterable[Part],
    *,
    prepend: bytes = b"",
    append: bytes = b"",
    comment: bytes = b"",
    entries: int | None = None,
    zip64: bool = False,
) -> bytes:
    """An archive of the parts. ``prepend`` does not shift the offsets (as when junk was put before a file)."""
    body, directory = bytearray(), bytearray()
    count = 0
    for part in parts:
        offset = len(body)
        local, central = _headers(part, offset)
        body += local
        directory += central
        count += 1
    start = len(body)
    declared = count if entries is None else entries
    tail = b""
    if zip64:
        tail += struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, declared, declared, len(directory), start)
        tail += struct.pack("<4sIQI", b"PK\6\7", 0, start + len(directory), 1)
    small = (0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF) if zip64 else (declared, declared, len(directory), start)
    tail += struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, *small, len(comment)) + comment
    return prepend + bytes(body) + bytes(directory) + tail + append


def _headers(part: Part, offset: int) -> tuple[bytes, bytes]:
    name = part.name if isinstance(part.name, bytes) else part.name.encode()
    local_name = name if part.local_name is None else part.local_name
    local_name = local_name if isinstance(local_name, bytes) else local_name.encode()
    payload = _deflated(part.data) if part.deflate else part.data
    method = (8 if part.deflate else 0) if part.method is None else part.method
    crc = zlib.crc32(part.data) if part.crc is None else part.crc
    local_crc = crc if part.local_crc is None else part.local_crc
    size = len(part.data) if part.size is None else part.size
    compressed = len(payload) if part.compressed is None else part.compressed
    position = offset if part.offset is None else part.offset
    extra, shown = part.extra, (compressed, size, position)
    if part.zip64:
        extra += struct.pack("<HHQQQ", 1, 24, size, compressed, position)
        shown = (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    limited = (min(shown[0], 0xFFFFFFFF), min(shown[1], 0xFFFFFFFF))
    local = struct.pack(
        "<4s5HIIIHH", part.local_magic, 20, part.flags, method, 0, 0, local_crc, *limited, len(local_name), 0
    )
    central = struct.pack(
        "<4s6HIIIHHHHHII", b"PK\1\2", 0x314, 20, part.flags, method, 0, 0, crc, *limited,
        len(name), len(extra), 0, 0, 0, part.mode << 16, shown[2],
    )  # fmt: skip
    return local + local_name + payload, central + name + extra


def _deflated(data: bytes) -> bytes:
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    return pack.compress(data) + pack.flush()
