"""A child's output stream: a file that cannot fill the disk, of which size and tail are wanted.

A limit on file size would send the child a signal, and a pipe would block it: both change what is being observed. So
when a file takes more than ``LIMIT`` on disk, its beginning is given back to the file system (a hole), while the child
goes on appending: size and tail stay exact. Where the file system knows no holes the file is cut to nothing instead,
its tail and size noted before; what is written between the look and the cut is then not counted.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

LIMIT = 64 * 1024 * 1024
TAIL = 16 * 1024
_BLOCK = 4096
_SECTOR = 512  # The unit of st_blocks.
# <linux/falloc.h>, since Linux 5.5 for every file system that can punch holes: what fallocate(2) does, reachable
# without native code of our own. struct space_resv: type, whence, start, length, and fields that are not used.
_FS_IOC_UNRESVSP64 = 0x4030582B
_SPACE = "=hh4xqqiI16x"


class Output:
    """One stream's file, looked at while the child runs and read after its end."""

    def __init__(self, path: Path, *, limit: int = LIMIT) -> None:
        self._path = path
        self._limit = limit
        self._cut_bytes = 0
        self._kept = b""

    def trim(self) -> None:
        """Give space back if the file takes too much."""
        try:
            found = self._path.stat()
            if found.st_blocks * _SECTOR > self._limit and not _punch(self._path, found.st_size - TAIL):
                self._cut()
        except OSError:
            return

    def _cut(self) -> None:
        tail, size = _read_tail(self._path), self._path.stat().st_size
        os.truncate(self._path, 0)
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


def _punch(path: Path, end: int) -> bool:
    """Make a hole of the file up to ``end``; False where that cannot be done."""
    with path.open("r+b") as stream:
        try:
            fcntl.ioctl(stream, _FS_IOC_UNRESVSP64, struct.pack(_SPACE, 0, os.SEEK_SET, 0, end - end % _BLOCK, 0, 0))
        except OSError:
            return False
    return True


def _read_tail(path: Path) -> bytes:
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - TAIL))
        return stream.read(TAIL)
