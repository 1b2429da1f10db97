"""Where the bytes stand that make a package ask for an executable stack, and what they must be instead.

One bit of one program header (``PF_X`` of ``PT_GNU_STACK``) in each shared object; in an archive also the member's
checksum, in the central directory, in the local header and behind the data, wherever it is written down.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator

from aotidoctor.model.errors import CannotExamineError, examining
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob, opened_blob
from aotidoctor.readers.package.changed_copy import changed_copy
from aotidoctor.readers.package.elf import PF_X, PT_GNU_STACK, ElfError, read_header, read_segments
from aotidoctor.readers.package.zip_directory import STORED, Entry, read_directory

_LOCAL_CRC, _CENTRAL_CRC = 14, 16
_DESCRIPTOR = b"PK\7\x08"


@record
class Patch:
    """``data`` belongs at byte ``offset`` of the file; ``what`` says what it changes."""

    offset: int
    data: bytes
    what: str


def stack_patches(path: str) -> tuple[Patch, ...]:
    """The patches that clear the flag in a package or a bare shared object; none where nothing asks for it.

    Raises:
        CannotExamineError: the file cannot be read, or it cannot be changed in place.
    """
    with examining(path), opened_blob(path) as (blob, _):
        return tuple(_patches(path, blob))


def _patches(path: str, blob: Blob) -> Iterator[Patch]:
    if blob.read_at(0, 4) == b"\x7fELF":
        flags = _flags(path, blob)
        if flags is not None:
            yield Patch(offset=flags[0], data=flags[1], what=f"{os.path.basename(path)}: GNU_STACK")  # noqa: PTH119
        return
    directory = read_directory(blob)
    if directory is None:
        raise CannotExamineError(f"{path}: observed neither an archive nor a shared object, expected a package")
    if directory.problem is not None:
        raise CannotExamineError(f"{path}: {directory.problem}")
    for entry in directory.entries:
        if entry.name.endswith(".so"):
            yield from _of_member(path, blob, entry)


def _of_member(path: str, blob: Blob, entry: Entry) -> Iterator[Patch]:
    if entry.method != STORED or entry.encrypted or entry.data_offset is None or entry.mismatch:
        raise CannotExamineError(f"{path}: {entry.name} is compressed or damaged: it cannot be changed in place")
    start = entry.data_offset
    member = blob.part(start, entry.size)
    flags = _flags(f"{path}: {entry.name}", member)
    if flags is None:
        return
    before, after = _checksums(member, *flags)
    if before != entry.crc:
        raise CannotExamineError(f"{path}: {entry.name} does not agree with its checksum: it is damaged")
    yield Patch(offset=start + flags[0], data=flags[1], what=f"{entry.name}: GNU_STACK")
    crc, old = struct.pack("<I", after), struct.pack("<I", before)
    places = [entry.central_offset + _CENTRAL_CRC, entry.header_offset + _LOCAL_CRC, *_descriptor(blob, entry)]
    for place in places:
        if blob.read_at(place, 4) == old:
            yield Patch(offset=place, data=crc, what=f"{entry.name}: checksum")


def _descriptor(blob: Blob, entry: Entry) -> list[int]:
    """Where the checksum stands behind the data, if it does."""
    if not entry.has_descriptor or entry.data_offset is None:
        return []
    end = entry.data_offset + entry.compressed
    return [end + 4 if blob.read_at(end, 4) == _DESCRIPTOR else end]


def _checksums(member: Blob, offset: int, data: bytes) -> tuple[int, int]:
    """CRC of the member as it is, and with ``data`` at ``offset``; in pieces."""
    before = after = 0
    position = 0
    for chunk in member.chunks():
        before = zlib.crc32(chunk, before)
        changed = bytearray(chunk)
        for index, byte in enumerate(data, offset - position):
            if 0 <= index < len(changed):
                changed[index] = byte
        after = zlib.crc32(changed, after)
        position += len(chunk)
    return before, after


def _flags(name: str, blob: Blob) -> tuple[int, bytes] | None:
    """Offset of the flags of GNU_STACK and their bytes without PF_X; None where they do not have it."""
    try:
        header = read_header(blob.read_at(0, 64))
    except ElfError:
        return None
    try:
        segments = read_segments(header, blob)
    except ElfError:
        segments = ()
    for index, segment in enumerate(segments):
        if segment.type == PT_GNU_STACK:
            at = header.phoff + index * header.phentsize + (4 if header.bits == 64 else 24)
            data = struct.pack(f"{header.order}I", segment.flags & ~PF_X)
            return (at, data) if segment.flags & PF_X else None
    raise CannotExamineError(f"{name}: it has no GNU_STACK header that could be changed; link it with -z noexecstack")


def copy_patched(source: str, target: str, patches: tuple[Patch, ...]) -> None:
    """Copy ``source`` to ``target`` with ``patches`` applied: whole, or not at all. Raises ``OSError``."""
    with changed_copy(source, target) as stream:
        for patch in patches:
            stream.seek(patch.offset)
            stream.write(patch.data)
