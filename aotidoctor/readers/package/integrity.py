"""Is the archive what its directory says? Checksums, overlaps, absurd sizes; all before anything else is believed.

The loader never compares checksums, so a flipped bit in the shared object becomes a crash or a wrong number.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from aotidoctor.model.artifact import CrcState
from aotidoctor.readers.package.blob import CHUNK, Blob
from aotidoctor.readers.package.zip_directory import DEFLATED, STORED, Entry

# A quarter of a second where the file is in memory already: less than it takes to load such a package.
DEFAULT_CRC_LIMIT = 1 << 30
# What unpacking a byte takes of the time, by that of looking at one (measured: 0.25 GB/s, 4 GB/s).
_UNPACKING = 16
# deflate cannot do better than 1032:1; honest sources of a package reach 5 to 20.
MAX_RATIO = 1032
SUSPICIOUS_RATIO = 100
SUSPICIOUS_SIZE = 256 << 20


def crc_states(blob: Blob, entries: Sequence[Entry], limit: int) -> list[CrcState]:
    """State per entry. Shared objects first, then by size; what does not fit into ``limit`` bytes is not read.

    A byte that must be unpacked counts as sixteen.
    """
    states = [CrcState.NOT_READ] * len(entries)
    left = limit
    for index in sorted(range(len(entries)), key=lambda i: _priority(entries[i])):
        entry = entries[index]
        cost = max(entry.size, entry.compressed) * (1 if entry.method == STORED else _UNPACKING)
        if cost <= left:
            states[index] = crc_state(blob, entry)
            left -= cost
    return states


def crc_state(blob: Blob, entry: Entry) -> CrcState:
    """Compare the data of one entry with its recorded checksum, streaming."""
    if entry.encrypted or entry.method not in (STORED, DEFLATED):
        return CrcState.NOT_READ
    if entry.data_offset is None or entry.data_offset + entry.compressed > blob.size:
        return CrcState.BAD
    if entry.method == STORED:
        good = entry.size == entry.compressed and _stored_crc(blob.part(entry.data_offset, entry.size)) == entry.crc
    else:
        good = _deflated_crc(blob.part(entry.data_offset, entry.compressed), entry.size) == entry.crc
    return CrcState.GOOD if good else CrcState.BAD


def damage(bad_crc: Sequence[str]) -> str | None:
    """What is said of a file with such members: PyTorch takes damaged weights for good ones. None without any."""
    return f"is damaged: the data of {bad_crc[0]} do not match their recorded checksum" if bad_crc else None


def oversized(blob: Blob, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Names of members that declare a size they cannot have, or that unpack to far more than they take."""
    return tuple(entry.name for entry in entries if _is_oversized(blob, entry))


def overlapping(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Names of members whose bytes another member claims too (the trick of a zip bomb)."""
    spans = sorted(
        (entry.header_offset, entry.data_offset + entry.compressed, entry.name)
        for entry in entries
        if entry.data_offset is not None
    )
    found = []
    reached = -1
    for start, end, name in spans:
        if start < reached:
            found.append(name)
        reached = max(reached, end)
    return tuple(found)


def read_entry(blob: Blob, entry: Entry, limit: int) -> bytes | None:
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


def _priority(entry: Entry) -> tuple[bool, int]:
    return (not entry.name.endswith(".so"), entry.size)


def _stored_crc(payload: Blob) -> int:
    crc = 0
    for chunk in payload.chunks():
        crc = zlib.crc32(chunk, crc)
    return crc


def _deflated_crc(payload: Blob, size: int) -> int | None:
    """Checksum of the unpacked data; None when it does not unpack to exactly ``size`` bytes."""
    crc = total = 0
    try:
        for data in _inflate(payload):
            crc = zlib.crc32(data, crc)
            total += len(data)
            if total > size:
                return None
    except (zlib.error, EOFError):
        return None
    return crc if total == size else None


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


def _is_oversized(blob: Blob, entry: Entry) -> bool:
    if entry.data_offset is not None and entry.data_offset + entry.compressed > blob.size:
        return True
    if entry.method == STORED:
        return entry.size != entry.compressed
    ratio = entry.size / max(entry.compressed, 1)
    return ratio > MAX_RATIO + 1 or (ratio > SUSPICIOUS_RATIO and entry.size > SUSPICIOUS_SIZE)
