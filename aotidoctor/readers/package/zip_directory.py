"""The directory of a zip archive, read with bounds.

Python's ``zipfile`` is not used: it believes sizes that a hostile archive declares, hides duplicate names, does not
look at local headers until a member is opened, and takes 20 ms to import. What is needed here is small: the end
record, its zip64 variant, the central directory, and each local header for comparison.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob

STORED = 0
DEFLATED = 8

MAX_ENTRIES = 100_000
MAX_DIRECTORY = 64 << 20
_TAIL = 22 + 0xFFFF
END = struct.Struct("<4s4H2IH")
END64 = struct.Struct("<4sQ2H2I4Q")
LOCATOR64 = struct.Struct("<4sIQI")
CENTRAL = struct.Struct("<4s4B4HIIIHHHHHII")
LOCAL = struct.Struct("<4s5HIIIHH")
# A local header with a name of usual length.
_HEADER_READ = LOCAL.size + 512
FULL32 = 0xFFFFFFFF
HAS_DESCRIPTOR = 0x08


@record
class Entry:
    """One line of the central directory. Sizes and offsets in bytes; ``mode`` is the Unix mode (0 when not given).

    ``data_offset`` is where the payload begins, None when there is no local header where the directory says.
    ``mismatch`` names the fields that differ in the local header. ``central_offset`` is where its line begins.
    """

    name: str
    size: int
    compressed: int
    method: int
    crc: int
    flags: int
    mode: int
    header_offset: int
    data_offset: int | None = None
    mismatch: tuple[str, ...] = ()
    central_offset: int = 0

    @property
    def has_descriptor(self) -> bool:
        """Whether checksum and sizes stand behind the payload, too."""
        return bool(self.flags & HAS_DESCRIPTOR)

    @property
    def encrypted(self) -> bool:
        """Whether the payload is encrypted."""
        return bool(self.flags & 1)


@record
class ZipDirectory:
    """The entries in directory order. ``problem`` says why reading stopped; ``trailing`` counts bytes after the zip."""

    entries: tuple[Entry, ...] = ()
    problem: str | None = None
    trailing: int = 0


@record(kw_only=False)
class _End:
    position: int
    entries: int
    size: int
    offset: int
    after: int


def read_directory(blob: Blob) -> ZipDirectory | None:
    """The directory of the archive in ``blob``; None when there is no end record (not a zip, or cut)."""
    end = _find_end(blob)
    if end is None:
        return None
    start, shift = _locate(blob, end)
    trailing = blob.size - end.after
    if start is None:
        return ZipDirectory(problem="the central directory is not where the end record states", trailing=trailing)
    if end.size > MAX_DIRECTORY:
        return ZipDirectory(problem=f"the central directory claims {end.size} bytes", trailing=trailing)
    raw, problem = _read_central(blob.read_at(start, end.size), start, end.entries)
    if blob.prefetch is not None:
        blob.prefetch([(entry.header_offset + shift, _HEADER_READ) for entry in raw])
    entries = tuple(_with_local_header(blob, entry, shift) for entry in raw)
    if shift and problem is None:
        problem = f"{shift} bytes before the archive"
    return ZipDirectory(entries=entries, problem=problem, trailing=trailing)


def _find_end(blob: Blob) -> _End | None:
    base = max(0, blob.size - _TAIL)
    tail = blob.read_at(base, _TAIL)
    position = len(tail)
    # The last signature is the real one unless a comment holds another; a few tries are enough.
    for _ in range(16):
        position = tail.rfind(b"PK\5\6", 0, position)
        if position < 0:
            return None
        if position + END.size <= len(tail):
            end = _parse_end(blob, base + position, tail[position : position + END.size])
            if end is not None:
                return end
    return None


def _parse_end(blob: Blob, position: int, data: bytes) -> _End | None:
    _, _, _, _, entries, size, offset, comment = END.unpack(data)
    after = min(position + END.size + comment, blob.size)
    if entries == 0xFFFF or FULL32 in (size, offset):
        wide = _parse_end64(blob, position, after)
        if wide is not None:
            return wide
    return _End(position, entries, size, offset, after) if size <= position else None


def _parse_end64(blob: Blob, position: int, after: int) -> _End | None:
    locator = blob.read_at(position - LOCATOR64.size, LOCATOR64.size)
    if len(locator) < LOCATOR64.size or not locator.startswith(b"PK\6\7"):
        return None
    # Where the locator says, or (bytes put before the archive) right before the locator.
    for place in (int(LOCATOR64.unpack(locator)[2]), position - LOCATOR64.size - END64.size):
        data = blob.read_at(place, END64.size)
        if len(data) == END64.size and data.startswith(b"PK\6\6"):
            return _unpack_end64(data, place, after)
    return None


def _unpack_end64(data: bytes, place: int, after: int) -> _End | None:
    *_, entries, size, offset = END64.unpack(data)
    return _End(place, entries, size, offset, after) if size <= place else None


def _locate(blob: Blob, end: _End) -> tuple[int | None, int]:
    """Where the central directory begins, and how many bytes were put before the archive."""
    if end.entries == 0 and end.size == 0:
        return end.position, 0
    if blob.read_at(end.offset, 4) == b"PK\1\2":
        return end.offset, 0
    # PyTorch always writes a zip64 record and its locator between the directory and the end record.
    between = LOCATOR64.size + END64.size
    for moved in (end.position - end.size, end.position - between - end.size):
        if moved >= end.offset and blob.read_at(moved, 4) == b"PK\1\2":
            return moved, moved - end.offset
    return None, 0


def _read_central(data: bytes, start: int, declared: int) -> tuple[list[Entry], str | None]:
    entries: list[Entry] = []
    for entry in _iterate_central(data, start):
        if len(entries) >= MAX_ENTRIES:
            return entries, f"more than {MAX_ENTRIES} members"
        entries.append(entry)
    if len(entries) != declared and len(entries) & 0xFFFF != declared:
        return (
            entries,
            f"the central directory contains {len(entries)} readable entries, the end record states {declared}",
        )
    return entries, None


def _iterate_central(data: bytes, start: int) -> Iterator[Entry]:
    position = 0
    while position + CENTRAL.size <= len(data):
        fields = CENTRAL.unpack_from(data, position)
        if fields[0] != b"PK\1\2":
            return
        (_, _, _, _, _, flags, method, _, _, crc, compressed, size) = fields[:12]
        name_length, extra_length, comment_length, _, _, external, offset = fields[12:]
        line, name_at = start + position, position + CENTRAL.size
        extra_at = name_at + name_length
        position = extra_at + extra_length + comment_length
        if position > len(data):
            return
        extra = data[extra_at : extra_at + extra_length]
        size, compressed, offset = _widen(extra, size, compressed, offset)
        yield Entry(
            name=data[name_at:extra_at].decode("utf-8", "backslashreplace"),
            size=size,
            compressed=compressed,
            method=method,
            crc=crc,
            flags=flags,
            mode=external >> 16,
            header_offset=offset,
            central_offset=line,
        )


def _widen(extra: bytes, size: int, compressed: int, offset: int) -> tuple[int, int, int]:
    """Zip64: the fields that are full in the entry stand in extra field 1, in this order."""
    wide = _extra_field(extra, 1)
    values = iter(struct.unpack(f"<{len(wide) // 8}Q", wide[: len(wide) // 8 * 8]))
    size = next(values, size) if size == FULL32 else size
    compressed = next(values, compressed) if compressed == FULL32 else compressed
    offset = next(values, offset) if offset == FULL32 else offset
    return size, compressed, offset


def _extra_field(extra: bytes, wanted: int) -> bytes:
    position = 0
    while position + 4 <= len(extra):
        identifier, length = struct.unpack_from("<HH", extra, position)
        if identifier == wanted:
            return extra[position + 4 : position + 4 + length]
        position += 4 + length
    return b""


def _with_local_header(blob: Blob, entry: Entry, shift: int) -> Entry:
    offset = entry.header_offset + shift
    data = blob.read_at(offset, _HEADER_READ)
    if len(data) < LOCAL.size or not data.startswith(b"PK\3\4"):
        return replace(entry, header_offset=offset, data_offset=None, mismatch=("header",))
    _, _, flags, method, _, _, crc, compressed, size, name_length, extra_length = LOCAL.unpack_from(data)
    name = data[LOCAL.size : LOCAL.size + name_length]
    if len(name) < name_length:
        name = blob.read_at(offset + LOCAL.size, name_length)
    mismatch = [] if name.decode("utf-8", "backslashreplace") == entry.name else ["name"]
    if method != entry.method:
        mismatch.append("method")
    if not flags & HAS_DESCRIPTOR:
        mismatch += _size_mismatch(entry, crc, compressed, size)
    return replace(
        entry,
        header_offset=offset,
        data_offset=offset + LOCAL.size + name_length + extra_length,
        mismatch=tuple(mismatch),
    )


def _size_mismatch(entry: Entry, crc: int, compressed: int, size: int) -> list[str]:
    found = ["crc"] if crc != entry.crc else []
    if size not in (entry.size, FULL32) or compressed not in (entry.compressed, FULL32):
        found.append("size")
    return found
