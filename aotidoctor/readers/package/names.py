"""Member names that break a rule of archives. Nothing is extracted here, but the loader does extract."""

from __future__ import annotations

import posixpath
import re
import stat
from collections.abc import Iterable

_DRIVE = re.compile(r"^[A-Za-z]:")


def unsafe_kind(name: str) -> str | None:
    """``absolute`` or ``parent`` when the name could leave the directory it is extracted to, else None.

    Backslashes count as separators and drive letters as roots: the archive may be unpacked on Windows. An empty name
    and one with a NUL character count as ``absolute``: what they become depends on the reader.
    """
    unified = name.replace("\\", "/")
    if unified.startswith("/") or _DRIVE.match(unified) or "\0" in name or not name:
        return "absolute"
    if ".." in unified.split("/"):
        return "parent"
    return None


def unsafe_names(names: Iterable[str]) -> tuple[str, ...]:
    """The unsafe names, in order."""
    return tuple(name for name in names if unsafe_kind(name) is not None)


def duplicate_names(names: Iterable[str]) -> tuple[str, ...]:
    """Each name whose path an earlier name has already (``a//b`` and ``./a/b`` are ``a/b``)."""
    seen: set[str] = set()
    found: dict[str, None] = {}
    for name in names:
        path = posixpath.normpath(name) if name else ""
        if path in seen and not name.endswith("/"):
            found[name] = None
        seen.add(path)
    return tuple(found)


def is_symlink_mode(mode: int) -> bool:
    """Whether a Unix mode (upper half of the external attributes) says symbolic link."""
    return stat.S_ISLNK(mode)
