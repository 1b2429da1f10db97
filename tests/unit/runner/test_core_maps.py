"""The memory map in a core file, written here after the ELF format: headers, segments, the note of mapped files."""

from __future__ import annotations

import struct

import pytest

from aotidoctor.runner.core_file import core_maps

LOAD, NOTE, FILES, PRSTATUS = 1, 4, 0x46494C45, 1
READ, WRITE, EXECUTE = 4, 2, 1


def note(kind, body, name=b"CORE\0"):
    padded = [text + bytes(-len(text) % 4) for text in (name, body)]
    return struct.pack("<III", len(name), len(body), kind) + b"".join(padded)


def files(*mapped, page=4096):
    """The note NT_FILE: ``(start, end, offset in pages, path)``."""
    head = struct.pack("<QQ", len(mapped), page)
    rows = b"".join(struct.pack("<QQQ", start, end, offset) for start, end, offset, _ in mapped)
    return note(FILES, head + rows + b"".join(path + b"\0" for *_, path in mapped))


def core(*segments, notes=b"", magic=b"\x7fELF\x02\x01\x01"):
    """A core file with these segments, ``(address, size, rights)``, behind the one of the notes."""
    count = len(segments) + 1
    at = 64 + 56 * count
    header = struct.pack("<16sHHIQQQIHHHHHH", magic, 4, 62, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0)
    rows = [struct.pack("<IIQQQQQQ", NOTE, 0, at, 0, 0, len(notes), 0, 4)]
    rows += [struct.pack("<IIQQQQQQ", LOAD, rights, 0, start, 0, 0, size, 4096) for start, size, rights in segments]
    return header + b"".join(rows) + notes


def read(tmp_path, data):
    path = tmp_path / "core"
    path.write_bytes(data)
    return core_maps(str(path))


SEGMENTS = ((0x400000, 0x2000, READ | EXECUTE), (0x7F0000000000, 0x1000, READ | WRITE), (0x7FFE00000000, 0x3000, 0))
MAPPED = (
    (0x400000, 0x402000, 0, b"/opt/my program"),
    (0x7F0000000000, 0x7F0000001000, 3, "/lib/lib\u00e4.so".encode()),
)


def test_addresses_rights_offsets_and_files(tmp_path):
    """The note that lists the files may stand behind others, of lengths that are no multiple of four."""
    notes = note(PRSTATUS, b"x" * 5) + note(0x53494749, b"", name=b"LINUX\0") + files(*MAPPED)
    assert read(tmp_path, core(*SEGMENTS, notes=notes)) == [
        "400000-402000 r-xp 00000000 00:00 0 /opt/my program",
        "7f0000000000-7f0000001000 rw-p 00003000 00:00 0 /lib/lib\u00e4.so",
        "7ffe00000000-7ffe00003000 ---p 00000000 00:00 0",
    ]


@pytest.mark.parametrize("notes", [b"", note(PRSTATUS, b"x" * 336), b"x" * 7], ids=["none", "others", "cut"])
def test_without_the_list_of_files_the_addresses_are_left(tmp_path, notes):
    assert read(tmp_path, core(*SEGMENTS[:1], notes=notes)) == ["400000-402000 r-xp 00000000 00:00 0"]


def test_a_list_that_promises_more_files_than_it_has(tmp_path):
    """A count that no note could hold."""
    lying = note(FILES, struct.pack("<QQ", 1 << 60, 4096))
    assert read(tmp_path, core(*SEGMENTS, notes=lying)) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF\x02\x01",
        core(*SEGMENTS, magic=b"\x7fELF\x01\x01\x01"),
        core(*SEGMENTS, magic=b"\x7fELF\x02\x02\x01"),
        core(*SEGMENTS)[:100],
    ],
    ids=["empty", "cut in the header", "32 bits", "big endian", "cut in the segments"],
)
def test_what_is_no_core_file_of_this_kind(tmp_path, data):
    assert read(tmp_path, data) == []


def test_a_file_that_is_not_there(tmp_path):
    assert core_maps(str(tmp_path / "missing")) == []
