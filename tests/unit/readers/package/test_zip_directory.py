"""Directories of zip archives that are cut, huge or lie about themselves."""

from __future__ import annotations

import struct

import pytest

from aotidoctor.readers.package.blob import Blob, bytes_blob
from aotidoctor.readers.package.zip_archive import MAX_DIRECTORY, read_zip_directory
from tests.artifacts.zips import Part, build_zip

PARTS = (Part("a/one", b"first"), Part("a/two", b"second"))


def names(data):
    found = read_zip_directory(bytes_blob(data))
    return None if found is None else ([entry.name for entry in found.entries], found.problem)


def end(size, offset, entries=1):
    return struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, entries, entries, size, offset, 0)


FALSE_END = b"PK\5\6" + b"\xff" * 18


@pytest.mark.parametrize(("times", "found"), [(0, True), (5, True), (15, True), (16, False), (40, False)])
def test_signatures_in_a_comment_are_looked_at_a_few_times(times, found):
    assert (names(build_zip(PARTS, comment=FALSE_END * times)) == (["a/one", "a/two"], None)) is found


def test_an_end_record_that_is_cut_is_none():
    assert names(build_zip(PARTS)[:-1]) is None
    assert names(build_zip(PARTS) + b"PK\5\6") == (["a/one", "a/two"], None)


def test_a_directory_of_no_sane_size_is_not_read():
    """A file of a gigabyte that nobody has: only what is looked at exists."""
    size, at = MAX_DIRECTORY + 1, 1000
    tail = end(size, at)
    start = (1 << 30) - len(tail)

    def read_at(place, length):
        assert length < 1 << 20
        if place == at:
            return b"PK\1\2"[:length]
        return (bytes(max(start - place, 0)) + tail)[-length:] if place + length >= start else bytes(length)

    found = read_zip_directory(Blob(1 << 30, read_at))
    assert (found.entries, found.problem) == ((), f"the central directory claims {size} bytes")


def test_zip64_without_its_record():
    whole = build_zip(PARTS, zip64=True)
    assert names(whole) == (["a/one", "a/two"], None)
    assert names(whole.replace(b"PK\6\6", b"XX\6\6")) is None
    assert names(whole.replace(b"PK\6\7", b"XX\6\7")) is None


def test_an_entry_that_is_none_ends_the_directory():
    data = bytearray(build_zip(PARTS))
    data[data.rfind(b"PK\1\2")] = 0
    told = "the central directory contains 1 readable entries, the end record states 2"
    assert names(bytes(data)) == (["a/one"], told)


@pytest.mark.parametrize("field", [28, 30, 32], ids=["name", "extra field", "comment"])
def test_an_entry_that_leads_out_of_the_directory_ends_it(field):
    data = bytearray(build_zip(PARTS))
    struct.pack_into("<H", data, data.rfind(b"PK\1\2") + field, 5000)
    assert names(bytes(data))[0] == ["a/one"]


@pytest.mark.parametrize("length", [511, 512, 513, 5000])
def test_a_name_longer_than_is_read_at_once(length):
    name = "n" * length
    found = read_zip_directory(bytes_blob(build_zip([Part(name, b"data")])))
    (entry,) = found.entries
    assert (entry.name, entry.mismatch, entry.data_offset) == (name, (), 30 + length)
    found = read_zip_directory(bytes_blob(build_zip([Part(name, b"data", local_name="n" * (length - 1) + "m")])))
    assert found.entries[0].mismatch == ("name",)


@pytest.mark.parametrize(
    ("place", "form", "name"), [(8, "<H", "method"), (14, "<I", "crc"), (18, "<I", "size"), (22, "<I", "size")]
)
def test_a_local_header_that_says_something_else(place, form, name):
    data = bytearray(build_zip(PARTS))
    struct.pack_into(form, data, place, 99)
    first, second = read_zip_directory(bytes_blob(bytes(data))).entries
    assert (first.mismatch, second.mismatch) == ((name,), ())
