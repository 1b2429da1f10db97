"""The folder that a load unpacks the package into, and whether that can work."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from aotidoctor.model.host import TmpdirState


def read_tmpdir(environ: Mapping[str, str], *, needed_bytes: int = 0) -> TmpdirState:
    """State of ``$TMPDIR`` (``/tmp`` when unset), which the loader honours. Looks only; creates nothing.

    ``needed_bytes`` is what the package takes unpacked.
    """
    path = environ.get("TMPDIR") or "/tmp"  # noqa: S108 - the loader's own default
    if not Path(path).is_dir():
        return TmpdirState(path=path, exists=False, writable=False, problem=_absence(path))
    writable = os.access(path, os.W_OK | os.X_OK)
    try:
        state = os.statvfs(path)
    except OSError as error:
        return TmpdirState(path=path, writable=writable, problem=f"cannot be examined: {error.strerror}")
    noexec = bool(state.f_flag & os.ST_NOEXEC)
    free = state.f_bavail * state.f_frsize
    # Some file systems (btrfs) have no fixed number of inodes and report 0 of 0.
    no_inodes = state.f_files > 0 and state.f_favail == 0
    return TmpdirState(
        path=path,
        writable=writable,
        noexec=noexec,
        free_bytes=0 if no_inodes else free,
        problem=_problem(writable, noexec, no_inodes, free, needed_bytes),
    )


def _absence(path: str) -> str:
    return "is not a directory" if Path(path).exists() else "does not exist"


def _problem(writable: bool, noexec: bool, no_inodes: bool, free: int, needed: int) -> str | None:
    if not writable:
        return "is not writable"
    if noexec:
        return "is mounted noexec, so no shared object can be mapped from it"
    if no_inodes:
        return "has no free inodes"
    if free < needed:
        return f"has {free} bytes free, the unpacked package takes {needed}"
    return None
