"""Folders of which something is executed later: for nobody else's eyes or hands, whatever the umask."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def make_private(folder: Path, root: Path) -> None:
    """Make ``folder`` and each level of it from ``root`` on, mode 0700. Raises OSError.

    What is above ``root`` is made as usual. A level that is somebody else's raises PermissionError.
    """
    root.parent.mkdir(parents=True, exist_ok=True)
    for level in _levels(folder, root):
        level.mkdir(mode=0o700, exist_ok=True)
        found = level.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise PermissionError(f"{level} is not a folder of this user")
        if stat.S_IMODE(found.st_mode) != 0o700:
            level.chmod(0o700)


def close_to_others(path: Path) -> None:
    """Take from everybody else what the umask gave them of ``path`` and what is in it. Raises OSError."""
    for one in (path, *(path.rglob("*") if path.is_dir() else ())):
        if not one.is_symlink():
            one.chmod(stat.S_IMODE(one.lstat().st_mode) & 0o700)


def is_private(path: Path, root: Path) -> bool:
    """Whether nobody else can have written ``path``, a file or folder below ``root``, and what is in it."""
    inside = path.rglob("*") if path.is_dir() and not path.is_symlink() else ()
    return all(_is_ours(one) for one in (*_levels(path, root), *inside))


def _levels(path: Path, root: Path) -> list[Path]:
    """``root`` and what is below it on the way to ``path``, outermost first."""
    between = [path, *path.parents]
    return between[: between.index(root) + 1][::-1]


def _is_ours(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    kind_is_plain = stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)
    return kind_is_plain and found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o022
