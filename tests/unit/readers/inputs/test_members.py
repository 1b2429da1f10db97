"""Members of a zip file whose directory and headers say something else than what is there."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import pytest

from aotidoctor.model.errors import InputsError
from aotidoctor.readers.inputs.torch_files import MAX_INFLATED, open_members

DATA = b"twenty-four bytes of it."


def archive(method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        file.writestr("a", DATA)
    return bytearray(out.getvalue())


def central(data, offset, form, value):
    """Change a field of the one line of the directory."""
    struct.pack_into(form, data, data.rfind(b"PK\1\2") + offset, value)
    return data


CRC, COMPRESSED, SIZE, METHOD, HEADER, FLAGS = (16, "<I"), (20, "<I"), (24, "<I"), (10, "<H"), (42, "<I"), (8, "<H")


def opened(tmp_path, data):
    path = tmp_path / "f.zip"
    path.write_bytes(data)
    return open_members(str(path), memoryview(bytes(data)))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_what_is_sound_is_read(tmp_path, method):
    members = opened(tmp_path, archive(method))
    assert (tuple(members.infos), bytes(members.read("a")), members.unchecked) == (("a",), DATA, 0)


DEFLATED = zipfile.ZIP_DEFLATED
STORED = zipfile.ZIP_STORED


@pytest.mark.parametrize(
    ("method", "field", "value", "observed", "expected"),
    [
        (STORED, SIZE, 25, "24 bytes", "25 as in the directory"),
        (STORED, COMPRESSED, 1000, f"{len(DATA) + 47 + 22} bytes", "1000 as in the directory"),
        (STORED, HEADER, 7, "no local header", "a local header at the position in the directory"),
        (STORED, HEADER, 1 << 20, "no local header", "a local header at the position in the directory"),
        (STORED, CRC, 1, f"CRC {zlib.crc32(DATA):08x}", "00000001: the data was changed"),
        (STORED, METHOD, 12, "an unusual compression or encryption", "stored or deflated data"),
        (DEFLATED, FLAGS, 1, "an unusual compression or encryption", "stored or deflated data"),
        (DEFLATED, SIZE, 23, "24 bytes", "23 as in the directory"),
        (DEFLATED, SIZE, MAX_INFLATED + 1, f"{MAX_INFLATED + 1} bytes deflated", f"at most {MAX_INFLATED}"),
        (STORED, METHOD, 8, "deflated data that does not inflate", "a complete file"),
    ],
)
def test_a_directory_that_lies(tmp_path, method, field, value, observed, expected):
    members = opened(tmp_path, central(archive(method), *field, value))
    with pytest.raises(InputsError) as caught:
        members.read("a")
    assert (caught.value.cause, caught.value.subject) == ("inputs-file-corrupt", "a")
    assert (caught.value.observed.partition(" (")[0], caught.value.expected) == (observed, expected)


def test_torch_can_be_told_to_write_no_checksums(tmp_path):
    members = opened(tmp_path, central(archive(), *CRC, 0))
    assert (bytes(members.read("a")), members.unchecked) == (DATA, 1)


def test_only_so_many_bytes_are_checked(tmp_path):
    members = opened(tmp_path, archive())
    members.crc_left = len(DATA) + 1
    for unchecked in (0, 1, 2):
        members.read("a")
        assert members.unchecked == unchecked


@pytest.mark.parametrize(
    ("data", "observed"),
    [
        (archive()[:-30], "a zip file without its central directory (truncated?)"),
        (central(archive(), 0, "<I", 0), "a damaged zip directory"),
    ],
)
def test_a_directory_that_cannot_be_read(tmp_path, data, observed):
    with pytest.raises(InputsError) as caught:
        opened(tmp_path, data)
    assert caught.value.observed.startswith(observed)


def test_two_members_of_one_name(tmp_path):
    data = archive()
    end = data.rfind(b"PK\5\6")
    line = data[data.rfind(b"PK\1\2") : end]
    size = len(line) * 2
    twice = data[:end] + line + data[end : end + 8] + struct.pack("<HHI", 2, 2, size) + data[end + 16 :]
    with pytest.raises(InputsError) as caught:
        opened(tmp_path, twice)
    assert (caught.value.subject, caught.value.observed) == ("a", "two members with one name")
