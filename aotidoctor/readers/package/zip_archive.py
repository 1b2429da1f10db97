"""Read a zip directory with bounds, and check the archive: checksums, overlaps, sizes, member names.

Python's ``zipfile`` is not used: it believes sizes that a hostile archive declares, hides duplicate names, does not
look at local headers until a member is opened, and takes 20 ms to import. What is needed here is small: the end
record, its zip64 variant, the central directory, and each local header for comparison.

Integrity comes before anything else is believed: the loader never compares checksums, so a flipped bit in the shared
object becomes a crash or a wrong number. Nothing is extracted here, but the loader does extract, so names that break
a rule of archives are listed.
"""

from __future__ import annotations

import posixpath
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from aotidoctor.model.artifact import CrcState
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import CHUNK, Blob

# Directory.
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
class ZipEntry:
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

    entries: tuple[ZipEntry, ...] = ()
    problem: str | None = None
    trailing: int = 0


@record(kw_only=False)
class _End:
    position: int
    entries: int
    size: int
    offset: int
    after: int


def read_zip_directory(blob: Blob) -> ZipDirectory | None:
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
        if position + END.size > len(tail):
            continue
        *_, entries, size, offset, comment = END.unpack_from(tail, position)
        start = base + position
        after = min(start + END.size + comment, blob.size)
        if entries == 0xFFFF or FULL32 in (size, offset):
            wide = _parse_end64(blob, start, after)
            if wide is not None:
                return wide
        if size <= start:
            return _End(start, entries, size, offset, after)
    return None


def _parse_end64(blob: Blob, position: int, after: int) -> _End | None:
    locator = blob.read_at(position - LOCATOR64.size, LOCATOR64.size)
    if len(locator) < LOCATOR64.size or not locator.startswith(b"PK\6\7"):
        return None
    # Where the locator says, or (bytes put before the archive) right before the locator.
    for place in (int(LOCATOR64.unpack(locator)[2]), position - LOCATOR64.size - END64.size):
        data = blob.read_at(place, END64.size)
        if len(data) == END64.size and data.startswith(b"PK\6\6"):
            *_, entries, size, offset = END64.unpack(data)
            return _End(place, entries, size, offset, after) if size <= place else None
    return None


def _locate(blob: Blob, end: _End) -> tuple[int | None, int]:
    """The offset of the central directory, and the number of bytes before the archive."""
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


def _read_central(data: bytes, start: int, declared: int) -> tuple[list[ZipEntry], str | None]:
    """The entries of the directory, and a problem. ``declared`` is how many the end record states."""
    entries: list[ZipEntry] = []
    position = 0
    while position + CENTRAL.size <= len(data):
        fields = CENTRAL.unpack_from(data, position)
        (_, _, _, _, _, flags, method, _, _, crc, compressed, size) = fields[:12]
        name_length, extra_length, comment_length, _, _, external, offset = fields[12:]
        line, name_at = start + position, position + CENTRAL.size
        extra_at = name_at + name_length
        position = extra_at + extra_length + comment_length
        if fields[0] != b"PK\1\2" or position > len(data):
            break
        if len(entries) >= MAX_ENTRIES:
            return entries, f"more than {MAX_ENTRIES} members"
        size, compressed, offset = _widen(data[extra_at : extra_at + extra_length], size, compressed, offset)
        entries.append(
            ZipEntry(
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
        )
    problem = None
    if len(entries) != declared and len(entries) & 0xFFFF != declared:
        problem = f"the central directory contains {len(entries)} readable entries, the end record states {declared}"
    return entries, problem


def _widen(extra: bytes, size: int, compressed: int, offset: int) -> tuple[int, int, int]:
    """Zip64: the fields that are full in the entry stand in extra field 1, in this order."""
    wide, position = b"", 0
    while position + 4 <= len(extra):
        identifier, length = struct.unpack_from("<HH", extra, position)
        position += 4 + length
        if identifier == 1:
            wide = extra[position - length : position]
            break
    values = iter(struct.unpack(f"<{len(wide) // 8}Q", wide[: len(wide) // 8 * 8]))
    size = next(values, size) if size == FULL32 else size
    compressed = next(values, compressed) if compressed == FULL32 else compressed
    offset = next(values, offset) if offset == FULL32 else offset
    return size, compressed, offset


def _with_local_header(blob: Blob, entry: ZipEntry, shift: int) -> ZipEntry:
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
        found = ["crc"] if crc != entry.crc else []
        if size not in (entry.size, FULL32) or compressed not in (entry.compressed, FULL32):
            found.append("size")
        mismatch += found
    return replace(
        entry,
        header_offset=offset,
        data_offset=offset + LOCAL.size + name_length + extra_length,
        mismatch=tuple(mismatch),
    )


# Integrity. A quarter of a second where the file is in memory already: less than it takes to load such a package.
DEFAULT_CRC_LIMIT = 1 << 30
# Where nothing will be loaded, that quarter of a second is more than everything else takes together.
QUICK_CRC_LIMIT = 64 << 20
NO_CRC_LIMIT = 1 << 62
# Pages of a member beyond the limit that are looked at.
_SAMPLES, _PAGE = 64, 4096
# What unpacking a byte takes of the time, by that of looking at one (measured: 0.25 GB/s, 4 GB/s).
_UNPACKING = 16
# deflate cannot do better than 1032:1; honest sources of a package reach 5 to 20.
MAX_RATIO = 1032
SUSPICIOUS_RATIO = 100
SUSPICIOUS_SIZE = 256 << 20


def crc_states(blob: Blob, entries: Sequence[ZipEntry], limit: int) -> list[CrcState]:
    """State per entry. Shared objects first, then by size; what does not fit into ``limit`` bytes is not read.

    A byte that must be unpacked counts as sixteen. Of stored members beyond the limit, up to ``DEFAULT_CRC_LIMIT``, a
    sample is looked at, and all where that has a page of zeros, as a copy leaves them that broke off.
    """
    states = [CrcState.NOT_READ] * len(entries)
    left, doubtful = limit, DEFAULT_CRC_LIMIT - limit if limit else 0
    for index in sorted(range(len(entries)), key=lambda i: (not entries[i].name.endswith(".so"), entries[i].size)):
        entry = entries[index]
        cost = max(entry.size, entry.compressed) * (1 if entry.method == STORED else _UNPACKING)
        if cost <= left:
            states[index] = crc_state(blob, entry)
            left -= cost
        elif entry.method == STORED and cost <= doubtful and _has_empty_page(blob, entry):
            states[index] = crc_state(blob, entry)
            doubtful -= cost
    return states


def _has_empty_page(blob: Blob, entry: ZipEntry) -> bool:
    begin, last = entry.data_offset or 0, max(0, entry.size - _PAGE)
    places = (begin + last * number // (_SAMPLES - 1) for number in range(_SAMPLES))
    return any(not any(blob.read_at(place, _PAGE)) for place in places)


def crc_state(blob: Blob, entry: ZipEntry) -> CrcState:
    """Compare the data of one entry with its recorded checksum, streaming."""
    if entry.encrypted or entry.method not in (STORED, DEFLATED):
        return CrcState.NOT_READ
    if entry.data_offset is None or entry.data_offset + entry.compressed > blob.size:
        return CrcState.BAD
    payload = blob.part(entry.data_offset, entry.compressed)
    crc = total = 0
    try:
        for data in payload.chunks() if entry.method == STORED else _inflate(payload):
            crc = zlib.crc32(data, crc)
            total += len(data)
            if total > entry.size:
                return CrcState.BAD
    except (zlib.error, EOFError):
        return CrcState.BAD
    return CrcState.GOOD if (total, crc) == (entry.size, entry.crc) else CrcState.BAD


def describe_damage(bad_crc: Sequence[str]) -> str | None:
    """The damage in words, since PyTorch takes damaged weights for good ones; None without bad members."""
    return f"is damaged: the data of {bad_crc[0]} do not match their recorded checksum" if bad_crc else None


def oversized_members(blob: Blob, entries: Sequence[ZipEntry]) -> Iterator[str]:
    """Names of members that declare a size they cannot have, or that unpack to far more than they take."""
    for entry in entries:
        ratio = entry.size / max(entry.compressed, 1)
        if entry.data_offset is not None and entry.data_offset + entry.compressed > blob.size:
            oversized = True
        elif entry.method == STORED:
            oversized = entry.size != entry.compressed
        else:
            oversized = ratio > MAX_RATIO + 1 or (ratio > SUSPICIOUS_RATIO and entry.size > SUSPICIOUS_SIZE)
        if oversized:
            yield entry.name


def overlapping_members(entries: Sequence[ZipEntry]) -> Iterator[str]:
    """Names of members whose bytes another member claims too (the trick of a zip bomb)."""
    spans = sorted(
        (entry.header_offset, entry.data_offset + entry.compressed, entry.name)
        for entry in entries
        if entry.data_offset is not None
    )
    reached = -1
    for start, end, name in spans:
        if start < reached:
            yield name
        reached = max(reached, end)


def read_entry(blob: Blob, entry: ZipEntry, limit: int) -> bytes | None:
    """Payload of one entry, unpacked; None when it is larger than ``limit`` or cannot be unpacked."""
    if entry.data_offset is None or entry.encrypted or entry.size > limit or entry.compressed > limit:
        return None
    data = blob.read_at(entry.data_offset, entry.compressed)
    if entry.method == STORED:
        return data
    if entry.method != DEFLATED:
        return None
    try:
        return zlib.decompressobj(-15).decompress(data, min(limit, max(entry.size, 1)))
    except zlib.error:
        return None


def _inflate(payload: Blob) -> Iterator[bytes]:
    """The unpacked data in pieces of at most 1 MiB. Raises EOFError when the stream has no end."""
    unpack = zlib.decompressobj(-15)
    for chunk in payload.chunks():
        rest = chunk
        while rest:
            yield unpack.decompress(rest, CHUNK)
            rest = unpack.unconsumed_tail
    while not unpack.eof:
        # All input is in, some output may still be waiting inside.
        data = unpack.decompress(b"", CHUNK)
        if not data:
            raise EOFError
        yield data


# Names.
_DRIVE = re.compile(r"^[A-Za-z]:")


def unsafe_names(names: Iterable[str]) -> tuple[str, ...]:
    """The unsafe names, in order."""
    return tuple(filter(is_unsafe, names))


def is_unsafe(name: str) -> bool:
    """Whether the name could leave the directory that it is extracted to.

    Backslashes count as separators and drive letters as roots: the archive may be unpacked on Windows. What an empty
    name and one with a NUL character become depends on the reader.
    """
    unified = name.replace("\\", "/")
    outside = unified.startswith("/") or _DRIVE.match(unified) is not None or ".." in unified.split("/")
    return outside or "\0" in name or not name


def duplicate_names(names: Iterable[str]) -> tuple[str, ...]:
    """Each name whose path an earlier name has already (``a//b`` and ``./a/b`` are ``a/b``)."""
    seen: set[str] = set()
    found: dict[str, None] = {}
    for name in names:
        path = posixpath.normpath(name) if name else ""
        if path in seen and not name.endswith("/"):
            found[name] = None
        seen.add(path)
    return tuple(found)
