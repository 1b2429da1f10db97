"""A copy of an archive in which one small member has other bytes; every other member stays where it is, as it is.

The new bytes go where the directory was, and the directory behind them. Nothing refers to the old bytes of the member
any more; they stay in the file, so that no other member has to move.
"""

from __future__ import annotations

import os
import struct
import zlib

from aotidoctor.model.errors import CannotExamineError
from aotidoctor.readers.package.blob import Blob, path_blob
from aotidoctor.readers.package.changed_copy import changed_copy
from aotidoctor.readers.package.zip_directory import (
    CENTRAL,
    END,
    END64,
    FULL32,
    HAS_DESCRIPTOR,
    LOCAL,
    LOCATOR64,
    STORED,
    Entry,
    read_directory,
)

# As PyTorch writes them: data begins at a multiple of this, behind an extra field of filling.
_ALIGNMENT = 64
_FILLING = 0x4246


def read_member(path: str, name: str) -> bytes:
    """The bytes of a member. Raises ``CannotExamineError`` where they cannot be had."""
    blob, entries = _opened(path)
    entry = _entry(path, entries, name)
    data = blob.read_at(entry.data_offset or 0, entry.compressed)
    try:
        plain = data if entry.method == STORED else zlib.decompress(data, -15, 16 << 20)
    except zlib.error as error:
        raise CannotExamineError(f"{path}: {name}: {error}") from error
    if zlib.crc32(plain) != entry.crc:
        raise CannotExamineError(f"{path}: {name} does not agree with its checksum: it is damaged")
    return plain


def copy_with_member(source: str, target: str, name: str, data: bytes) -> None:
    """Copy ``source`` to ``target`` with ``data`` for the member ``name``: whole, or not at all.

    Raises:
        CannotExamineError: the archive is damaged, or has no such member.
        OSError: the copy cannot be written.
    """
    blob, entries = _opened(source)
    entry = _entry(source, entries, name)
    start = min(one.central_offset for one in entries)
    local, new_line = _written(blob, entry, data, start)
    lines = [new_line if one is entry else _line(blob, one) for one in entries]
    with changed_copy(source, target) as stream:
        stream.truncate(start)
        stream.seek(start)
        stream.write(local + data)
        directory = stream.tell()
        stream.write(b"".join(lines))
        stream.write(_ends(directory, stream.tell() - directory, len(lines)))


def _opened(path: str) -> tuple[Blob, tuple[Entry, ...]]:
    try:
        blob = path_blob(path, os.stat(path).st_size)  # noqa: PTH116 - paths are texts here
    except (OSError, ValueError) as error:
        raise CannotExamineError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    directory = read_directory(blob)
    if directory is None or directory.problem is not None or directory.trailing:
        raise CannotExamineError(f"{path}: {(directory and directory.problem) or 'not an archive, or damaged'}")
    return blob, directory.entries


def _entry(path: str, entries: tuple[Entry, ...], name: str) -> Entry:
    found = [one for one in entries if one.name == name]
    if len(found) != 1 or found[0].data_offset is None or found[0].mismatch or found[0].encrypted:
        raise CannotExamineError(f"{path}: {name} is missing, damaged or duplicated: it cannot be replaced")
    return found[0]


def _line(blob: Blob, entry: Entry) -> bytes:
    """The line of the directory, as it is."""
    head = blob.read_at(entry.central_offset, CENTRAL.size)
    lengths = CENTRAL.unpack(head)[12:15]
    return blob.read_at(entry.central_offset, CENTRAL.size + sum(lengths))


def _written(blob: Blob, entry: Entry, data: bytes, start: int) -> tuple[bytes, bytes]:
    """Local header (at ``start``) and line of the directory."""
    old = list(CENTRAL.unpack(blob.read_at(entry.central_offset, CENTRAL.size)))
    name = blob.read_at(entry.central_offset + CENTRAL.size, old[12])
    crc, size = zlib.crc32(data), len(data)
    flags = old[5] & ~HAS_DESCRIPTOR if isinstance(old[5], int) else 0
    bare = start + LOCAL.size + len(name) + 4
    filling = -bare % _ALIGNMENT
    extra = struct.pack("<HH", _FILLING, filling) + b"Z" * filling
    local = LOCAL.pack(b"PK\3\4", 20, flags, 0, old[7], old[8], crc, size, size, len(name), len(extra)) + name + extra
    wide = struct.pack("<HHQ", 1, 8, start) if start >= FULL32 else b""
    line = CENTRAL.pack(
        *old[:5], flags, 0, *old[7:9], crc, size, size, len(name), len(wide), 0, 0, *old[16:18], min(start, FULL32)
    )
    return local, line + name + wide


def _ends(at: int, size: int, count: int) -> bytes:
    """The end records, with their wide variants."""
    wide = END64.pack(b"PK\6\6", END64.size - 12, 45, 45, 0, 0, count, count, size, at)
    locator = LOCATOR64.pack(b"PK\6\7", 0, at + size, 1)
    short = min(count, 0xFFFF)
    return wide + locator + END.pack(b"PK\5\6", 0, 0, short, short, min(size, FULL32), min(at, FULL32), 0)
