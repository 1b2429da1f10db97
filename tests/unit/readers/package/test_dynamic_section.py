"""Symbols of a shared object: the dynamic section does not count them, and what counts them may be damaged."""

from __future__ import annotations

import io
import struct

import pytest
from elftools.elf.elffile import ELFFile

from aotidoctor.readers.package.blob import bytes_blob
from aotidoctor.readers.package.shared_object import read_shared_object
from tests.artifacts.elfs import build_elf

HASH, GNU_HASH, VERNEED, VERNEEDNUM, UNKNOWN = 4, 0x6FFFFEF5, 0x6FFFFFFE, 0x6FFFFFFF, 0x6ABCDEF0
WANTED = {"aoti_torch_empty_strided", "memcpy", "__gmon_start__"}


def tagged(data, tag, *, value=None, rename=None):
    """The object with another value of a tag of the dynamic section, or without it."""
    data = bytearray(data)
    section = ELFFile(io.BytesIO(bytes(data))).get_section_by_name(".dynamic")
    for at in range(section["sh_offset"], section["sh_offset"] + section["sh_size"], 16):
        found, held = struct.unpack_from("<qQ", data, at)
        if found == tag:
            struct.pack_into("<qQ", data, at, tag if rename is None else rename, held if value is None else value)
            return bytes(data)
    raise AssertionError(tag)


def hashed(*words):
    """The object with other words in its GNU hash table; in these files an address is the place in the file."""
    data = bytearray(build_elf())
    tag = data.index(struct.pack("<q", GNU_HASH))
    struct.pack_into(f"<{len(words)}I", data, struct.unpack_from("<Q", data, tag + 8)[0], *words)
    return bytes(data)


def read(data):
    found = read_shared_object(bytes_blob(data), "m.so")
    return {symbol.name for symbol in found.undefined}, found.problem


@pytest.mark.parametrize(
    "data",
    [
        tagged(build_elf(), GNU_HASH, rename=UNKNOWN),
        tagged(build_elf(hash="sysv"), HASH, rename=UNKNOWN),
        tagged(build_elf(hash="sysv"), HASH, value=1 << 40),
    ],
    ids=["no GNU table", "no table", "a table outside of the file"],
)
def test_without_a_hash_table_the_section_headers_count(data):
    assert read(data) == (WANTED, None)


def test_without_section_headers_as_well_nothing_is_known():
    whole = build_elf()
    bare = bytearray(tagged(whole, GNU_HASH, rename=UNKNOWN))
    bare[40:48], bare[58:64] = bytes(8), bytes(6)
    assert read(bytes(bare))[0] == set()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (tagged(build_elf(), GNU_HASH, value=1 << 40), "the GNU hash table is not in the file"),
        (hashed(1 << 30), "the GNU hash table claims 1073741824 buckets"),
        (hashed(1, 1, 1 << 30), "the GNU hash table claims"),
        (tagged(build_elf(), VERNEED, value=1 << 40), "the version requirements lead out of the file"),
        (tagged(build_elf(), VERNEEDNUM, rename=UNKNOWN), "the dynamic section lacks tag 1879048191"),
    ],
)
def test_tables_that_make_no_sense(data, words):
    assert words in read(data)[1]


def test_no_version_requirements_are_read_where_there_are_none():
    found = read_shared_object(bytes_blob(tagged(build_elf(), VERNEEDNUM, value=0)), "m.so")
    assert {(one.name, one.version) for one in found.undefined} == {(name, None) for name in WANTED}
