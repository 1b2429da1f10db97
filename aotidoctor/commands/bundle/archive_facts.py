"""The package as a file: its checksum, and its members with sizes and CRCs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from aotidoctor.model.json_types import JsonValue
from aotidoctor.readers.package.blob import Blob, file_blob
from aotidoctor.readers.package.zip_directory import read_directory

_MOST = 5000


def file_checksum(path: Path) -> str:
    """SHA-256 in hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def list_members(path: Path) -> list[JsonValue]:
    """Name, size, compressed size and CRC-32 of the members; none for a file that is no archive. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _members(file_blob(descriptor, 0, os.fstat(descriptor).st_size))
    finally:
        os.close(descriptor)


def _members(blob: Blob) -> list[JsonValue]:
    directory = read_directory(blob)
    entries = directory.entries if directory is not None else ()
    return [
        {"name": entry.name, "size": entry.size, "compressed": entry.compressed, "crc32": f"{entry.crc:08x}"}
        for entry in entries[:_MOST]
    ]
