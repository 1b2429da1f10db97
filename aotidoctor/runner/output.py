"""A child's output stream: a file that cannot fill the disk, of which size and tail are wanted.

A limit on file size would send the child a signal, and a pipe would block it: both change what is being observed. So a
file that grows past ``LIMIT`` is cut to nothing while the child goes on appending. Its tail and its size are noted
before, and the size is a lower bound from then on (what is written between the look and the cut is not counted).
"""

from __future__ import annotations

import os
from pathlib import Path

LIMIT = 64 * 1024 * 1024
TAIL = 16 * 1024


class Output:
    """One stream's file, looked at while the child runs and read after its end."""

    def __init__(self, path: Path, *, limit: int = LIMIT) -> None:
        self._path = path
        self._limit = limit
        self._cut_bytes = 0
        self._kept = b""

    def trim(self) -> None:
        """Cut the file if it is too big."""
        try:
            size = self._path.stat().st_size
            if size <= self._limit:
                return
            tail = _read_tail(self._path)
            os.truncate(self._path, 0)
        except OSError:
            return
        self._cut_bytes += size
        self._kept = tail

    def read(self) -> tuple[str, int]:
        """The last 16 KiB as text, and the size in bytes of all that was written."""
        try:
            size = self._path.stat().st_size
            tail = _read_tail(self._path)
        except OSError:
            size, tail = 0, b""
        return (self._kept + tail)[-TAIL:].decode("utf-8", "replace"), self._cut_bytes + size


def _read_tail(path: Path) -> bytes:
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - TAIL))
        return stream.read(TAIL)
