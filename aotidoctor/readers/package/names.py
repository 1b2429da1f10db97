"""Member names that break a rule of archives. Nothing is extracted here, but the loader does extract."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

_DRIVE = re.compile(r"^[A-Za-z]:")


def unsafe_names(names: Iterable[str]) -> tuple[str, ...]:
    """The unsafe names, in order."""
    return tuple(filter(is_unsafe, names))


def is_unsafe(name: str) -> bool:
    """Whether the name could leave the directory that it is extracted to.

    Backslashes count as separators and drive letters as roots: the archive may be unpacked on Windows. What an empty
    name and one with a NUL character become depends on the reader.
    """
    unified = name.replace("\\", "/")
    outside = unified.startswith("/") or _DRIVE.match(unified) is not None or ".." in unified.split("/")
    return outside or "\0" in name or not name


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
