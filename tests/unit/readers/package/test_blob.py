"""Reading at a place: never more than there is, and all of it where the system gives it in pieces."""

from __future__ import annotations

import os

import pytest

from aotidoctor.readers.package.blob import CHUNK, Blob, bytes_blob, file_blob, path_blob

DATA = bytes(range(100))


@pytest.fixture
def blobs(tmp_path):
    """The same bytes in memory, by path, and the first of an open file."""
    path = tmp_path / "data"
    path.write_bytes(DATA)
    other = tmp_path / "more"
    other.write_bytes(DATA + b"behind")
    descriptor = os.open(other, os.O_RDONLY)
    yield bytes_blob(DATA), path_blob(str(path), len(DATA)), file_blob(descriptor, len(DATA))
    os.close(descriptor)


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, 100, DATA),
        (20, 5, DATA[20:25]),
        (95, 50, DATA[95:]),
        (100, 1, b""),
        (500, 1, b""),
        (-1, 5, b""),
        (5, 0, b""),
        (5, -2, b""),
    ],
)
def test_what_lies_outside_is_not_there(blobs, start, length, expected):
    assert [blob.read_at(start, length) for blob in blobs] == [expected] * 3


def test_all_of_it_up_to_a_limit(blobs):
    assert [blob.read_all(100) for blob in blobs] == [DATA] * 3
    assert [blob.read_all(99) for blob in blobs] == [None] * 3


def test_in_pieces():
    assert [len(piece) for piece in bytes_blob(bytes(CHUNK + 7)).chunks()] == [CHUNK, 7]
    assert list(bytes_blob(b"").chunks()) == []


def test_a_file_that_became_shorter_or_is_gone(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(DATA[:30])
    blob = path_blob(str(path), 100)
    assert blob.read_at(20, 50) == DATA[20:30]
    assert b"".join(blob.chunks()) == DATA[:30]
    path.unlink()
    assert blob.read_at(20, 50) == b""
    assert list(blob.chunks()) == []
    assert path_blob(str(tmp_path), 100).read_at(0, 5) == b""


def test_a_system_that_gives_less_than_asked_is_asked_again(blobs, monkeypatch):
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, wanted, at: whole(descriptor, min(wanted, 7), at))
    assert [blob.read_at(3, 60) for blob in blobs] == [DATA[3:63]] * 3


def test_a_piece_that_cannot_be_had_ends_the_reading():
    assert list(Blob(100, lambda start, length: DATA[start : start + 40] if start < 40 else b"").chunks()) == [
        DATA[:40]
    ]
