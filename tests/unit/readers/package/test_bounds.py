"""Large files cost nothing: what is read is bounded, nothing is written, nothing of the package is imported."""

from __future__ import annotations

import os
import struct
import subprocess
import sys

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.readers.package.blob import Blob
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.readers.package.shared_object import read_shared_object
from tests.artifacts.elfs import build_elf
from tests.artifacts.packages import package_parts
from tests.artifacts.zips import build_zip


def test_two_gigabytes_of_weights_are_not_read():
    library = build_elf()
    size = len(library) + (2 << 30)
    read = []

    def read_at(offset: int, length: int) -> bytes:
        data = (library[offset : offset + length]).ljust(min(length, size - offset), b"\0")
        read.append(len(data))
        return data

    found = read_shared_object(Blob(size, read_at), "m.so")
    assert found.problem is None
    assert len(found.undefined) == 3
    assert sum(read) < 1 << 20


def test_sparse_package_of_two_gigabytes(tmp_path):
    """The archive is real (a hole in the file where the weights are), the checksum of the library is not looked at."""
    parts = package_parts()
    library = next(part for part in parts if part.name.endswith(".so"))
    parts.remove(library)
    data = build_zip(parts)
    directory = data.index(b"PK\1\2")
    header_at, name = directory, library.name.encode()
    size = len(library.data) + (2 << 30)
    local = struct.pack("<4s5HIIIHH", b"PK\3\4", 20, 0, 0, 0, 0, 1, size, size, len(name), 0) + name
    central = struct.pack(
        "<4s6HIIIHHHHHII", b"PK\1\2", 0x314, 20, 0, 0, 0, 0, 1, size, size, len(name), 0, 0, 0, 0, 0, header_at
    )
    end = data.rindex(b"PK\5\6")
    body = data[directory:end] + central + name
    path = tmp_path / "big.pt2"
    with path.open("wb") as file:
        file.write(data[:directory] + local + library.data)
        file.seek(header_at + len(local) + size)
        start = file.tell()
        file.write(body)
        count = len(parts) + 1
        file.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(body), start, 0))
    found = read_artifact(str(path))
    assert found.kind is ArtifactKind.AOTI_PACKAGE
    assert found.unread_crc == (library.name,)
    assert found.sha256 is None
    assert found.models[0].shared_objects[0].constants_span == 64


def test_nothing_is_written(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.chdir(scratch)
    package = tmp_path / "m.pt2"
    package.write_bytes(build_zip(package_parts()))
    read_artifact(str(package))
    assert os.listdir(scratch) == []
    assert sorted(os.listdir(tmp_path)) == ["m.pt2", "scratch"]


def test_file_descriptors_are_closed(tmp_path):
    package = tmp_path / "m.pt2"
    package.write_bytes(build_zip(package_parts()))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        read_artifact(str(package))
    assert len(os.listdir("/proc/self/fd")) == before


def test_import_is_light():
    code = "import sys, aotidoctor.readers.package; print([m for m in ('elftools', 'torch', 'numpy', 'zipfile', 'pickle') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
