"""Small questions to /proc and to files that a program has open, asked thousands of times."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

_IN_CREATE, _IN_NONBLOCK = 0x100, 0o4000
_ENDED = (b"Z", b"X")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def looks_like_package(path: str) -> bool:
    """Whether it is an archive, by its name or first bytes."""
    try:
        if not os.path.isfile(path):  # noqa: PTH113 - a path of somebody else's, thousands of times
            return False
        if path.endswith(".pt2"):
            return True
        if path.endswith((".jar", ".whl", ".docx", ".npz", ".pth")):
            return False
        with open(path, "rb") as stream:  # noqa: PTH123 - likewise
            return stream.read(4) in _ZIP
    except (OSError, ValueError):
        return False


def is_missing_package(path: str) -> bool:
    """A word that names a package that is not there may be the whole failure."""
    return path.endswith(".pt2") and "\0" not in path


def children_of(pid: int) -> list[int]:
    """Processes that it has started and that are still there."""
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - thousands of looks
            found += [int(child) for child in read(f"/proc/{pid}/task/{task}/children").split()]
    return found


def born(pid: int) -> str | None:
    """The time at which the process began, which tells it from another one that has its number."""
    fields = _stat(pid)
    return fields[19].decode() if len(fields) > 19 and fields[0] not in _ENDED else None


def has_ended(pid: int) -> bool:
    """Whether the process is gone, or waits only for its parent to ask how it ended."""
    fields = _stat(pid)
    return not fields or fields[0] in _ENDED


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped it."""
    return _stat(pid)[:1] == [b"T"]


def _stat(pid: int) -> list[bytes]:
    """Its state and what follows; empty when it is gone. The name before that may hold anything."""
    return read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def core_limit(folder: str) -> str | None:
    """The soft limit of core files of the process whose folder in /proc this is."""
    for line in read(f"{folder}/limits").splitlines():
        if line.startswith(b"Max core file size"):
            return line.split()[4].decode()
    return None


def link(path: str) -> str | None:
    """Where a symbolic link leads; None where it cannot be read."""
    try:
        return os.readlink(path)  # noqa: PTH115 - thousands of looks
    except OSError:
        return None


def read(path: str) -> bytes:
    """The whole file; empty where it cannot be read."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - thousands of looks
            return stream.read()
    except OSError:
        return b""


def read_text(path: str) -> str:
    """The same as text."""
    return read(path).decode("utf-8", "replace")


def folder_events(folder: str) -> int | None:
    """A descriptor that becomes readable when something is made in the folder; None where the kernel has no such."""
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        fd = int(libc.inotify_init1(os.O_CLOEXEC | _IN_NONBLOCK))
        if fd >= 0:
            if libc.inotify_add_watch(fd, os.fsencode(folder), _IN_CREATE) >= 0:
                return fd
            os.close(fd)
    return None
