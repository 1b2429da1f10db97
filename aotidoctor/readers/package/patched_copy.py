"""Copy a package with changed bytes: another small member, or no request for an executable stack.

A copy appears whole or not at all. The new bytes of a member go where the directory was, and the directory behind
them; the old bytes stay in the file, so that no other member has to move.

The request is one bit of one program header (``PF_X`` of ``PT_GNU_STACK``) in each shared object; in an archive also
the member's checksum changes, in the central directory, in the local header and behind the data, wherever it is
written.
"""

from __future__ import annotations

import shutil
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from aotidoctor.files import open_regular, whole_file
from aotidoctor.model.errors import CannotExamineError, examining
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob, opened_blob, path_blob
from aotidoctor.readers.package.elf import PF_X, PT_GNU_STACK, ElfError, read_header, read_segments
from aotidoctor.readers.package.zip_archive import (
    CENTRAL,
    END,
    END64,
    FULL32,
    HAS_DESCRIPTOR,
    LOCAL,
    LOCATOR64,
    STORED,
    ZipEntry,
    read_zip_directory,
)


@contextmanager
def changed_copy(source: str, target: str) -> Iterator[BinaryIO]:
    """Yield a copy of ``source`` to change; it becomes ``target`` at the end of the block. Raises ``OSError``."""
    with open_regular(source) as package, whole_file(target) as stream:
        shutil.copyfileobj(package, stream, 1 << 20)
        stream.seek(0)
        yield stream


# Another member. As PyTorch writes them: data begins at a multiple of this, behind an extra field of filling.
_ALIGNMENT = 64
_FILLING = 0x4246


def read_member(path: str, name: str) -> bytes:
    """The bytes of a member. Raises ``CannotExamineError`` where they cannot be read."""
    blob, entries = _open_package(path)
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
    blob, entries = _open_package(source)
    entry = _entry(source, entries, name)
    start = min(one.central_offset for one in entries)
    local, new_line = _entry_bytes(blob, entry, data, start)
    lines = []
    for one in entries:
        lengths = CENTRAL.unpack(blob.read_at(one.central_offset, CENTRAL.size))[12:15]
        lines.append(new_line if one is entry else blob.read_at(one.central_offset, CENTRAL.size + sum(lengths)))
    with changed_copy(source, target) as stream:
        stream.truncate(start)
        stream.seek(start)
        stream.write(local + data)
        at, count = stream.tell(), len(lines)
        stream.write(b"".join(lines))
        size, short = stream.tell() - at, min(count, 0xFFFF)
        # The end records, with their wide variants.
        stream.write(END64.pack(b"PK\6\6", END64.size - 12, 45, 45, 0, 0, count, count, size, at))
        stream.write(LOCATOR64.pack(b"PK\6\7", 0, at + size, 1))
        stream.write(END.pack(b"PK\5\6", 0, 0, short, short, min(size, FULL32), min(at, FULL32), 0))


def _open_package(path: str) -> tuple[Blob, tuple[ZipEntry, ...]]:
    try:
        blob = path_blob(path, Path(path).stat().st_size)
    except (OSError, ValueError) as error:
        raise CannotExamineError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    directory = read_zip_directory(blob)
    if directory is None or directory.problem is not None or directory.trailing:
        raise CannotExamineError(f"{path}: {(directory and directory.problem) or 'not an archive, or damaged'}")
    return blob, directory.entries


def _entry(path: str, entries: tuple[ZipEntry, ...], name: str) -> ZipEntry:
    found = [one for one in entries if one.name == name]
    if len(found) != 1 or found[0].data_offset is None or found[0].mismatch or found[0].encrypted:
        raise CannotExamineError(f"{path}: {name} is missing, damaged or duplicated: it cannot be replaced")
    return found[0]


def _entry_bytes(blob: Blob, entry: ZipEntry, data: bytes, start: int) -> tuple[bytes, bytes]:
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


# Executable stack.
_LOCAL_CRC, _CENTRAL_CRC = 14, 16
_DESCRIPTOR = b"PK\7\x08"


@record
class StackPatch:
    """``data`` belongs at byte ``offset`` of the file; ``what`` says what it changes."""

    offset: int
    data: bytes
    what: str


def stack_patches(path: str) -> tuple[StackPatch, ...]:
    """The patches that clear the flag in a package or a bare shared object; none where nothing asks for it.

    Raises:
        CannotExamineError: the file cannot be read, or it cannot be changed in place.
    """
    with examining(path), opened_blob(path) as (blob, _):
        if blob.read_at(0, 4) == b"\x7fELF":
            flags = _flags(path, blob)
            what = f"{Path(path).name}: GNU_STACK"
            return () if flags is None else (StackPatch(offset=flags[0], data=flags[1], what=what),)
        directory = read_zip_directory(blob)
        if directory is None:
            raise CannotExamineError(f"{path}: observed neither an archive nor a shared object, expected a package")
        if directory.problem is not None:
            raise CannotExamineError(f"{path}: {directory.problem}")
        libraries = [entry for entry in directory.entries if entry.name.endswith(".so")]
        return tuple(patch for entry in libraries for patch in _of_member(path, blob, entry))


def _of_member(path: str, blob: Blob, entry: ZipEntry) -> Iterator[StackPatch]:
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
    yield StackPatch(offset=start + flags[0], data=flags[1], what=f"{entry.name}: GNU_STACK")
    crc, old = struct.pack("<I", after), struct.pack("<I", before)
    places = [entry.central_offset + _CENTRAL_CRC, entry.header_offset + _LOCAL_CRC]
    if entry.has_descriptor:
        end = start + entry.compressed
        places.append(end + 4 if blob.read_at(end, 4) == _DESCRIPTOR else end)
    for place in places:
        if blob.read_at(place, 4) == old:
            yield StackPatch(offset=place, data=crc, what=f"{entry.name}: checksum")


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


def copy_patched(source: str, target: str, patches: tuple[StackPatch, ...]) -> None:
    """Copy ``source`` to ``target`` with ``patches`` applied: whole, or not at all. Raises ``OSError``."""
    with changed_copy(source, target) as stream:
        for patch in patches:
            stream.seek(patch.offset)
            stream.write(patch.data)
