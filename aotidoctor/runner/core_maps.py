"""The memory map that a core file holds, as the lines of /proc/PID/maps.

A core file is an ELF file: its segments give addresses and rights, its note NT_FILE the files that were mapped.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_NOTE = struct.Struct("<III")
_PT_LOAD, _PT_NOTE, _NT_FILE = 1, 4, 0x46494C45
_MOST_SEGMENTS, _MOST_NOTES = 1 << 17, 64 << 20
_LITTLE_64 = b"\x7fELF\x02\x01"


def maps_of_core(path: str) -> list[str]:
    """The lines; empty for a file that cannot be read so."""
    try:
        with Path(path).open("rb") as stream:
            return _lines(stream)
    except (OSError, struct.error, ValueError):
        return []


def _lines(stream: BinaryIO) -> list[str]:
    header = _HEADER.unpack(stream.read(_HEADER.size))
    if not header[0].startswith(_LITTLE_64):
        return []
    stream.seek(header[5])
    table = stream.read(_SEGMENT.size * min(header[10], _MOST_SEGMENTS))
    segments = list(_SEGMENT.iter_unpack(table))
    files: dict[int, tuple[int, str]] = {}
    for kind, _, offset, _, _, size, _, _ in segments:
        if kind == _PT_NOTE:
            stream.seek(offset)
            files |= _files(stream.read(min(size, _MOST_NOTES)))
    return [
        _line(start, length, flags, files.get(start, (0, "")))
        for kind, flags, _, start, _, _, length, _ in segments
        if kind == _PT_LOAD
    ]


def _line(start: int, length: int, flags: int, file: tuple[int, str]) -> str:
    rights = "".join(letter if flags & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
    return f"{start:x}-{start + length:x} {rights}p {file[0]:08x} 00:00 0 {file[1]}".rstrip()


def _files(notes: bytes) -> dict[int, tuple[int, str]]:
    """First address -> offset and path, of the note that lists mapped files."""
    at = 0
    while at + _NOTE.size <= len(notes):
        name_size, size, kind = _NOTE.unpack_from(notes, at)
        body = at + _NOTE.size + (name_size + 3) // 4 * 4
        if kind == _NT_FILE:
            return _mapped(notes[body : body + size])
        at = body + (size + 3) // 4 * 4
    return {}


def _mapped(note: bytes) -> dict[int, tuple[int, str]]:
    count, page = struct.unpack_from("<QQ", note)
    names = note[16 + 24 * count :].split(b"\0")
    found = {}
    for index in range(min(count, len(names))):
        start, _, offset = struct.unpack_from("<QQQ", note, 16 + 24 * index)
        found[start] = (offset * page, names[index].decode("utf-8", "replace"))
    return found
