"""The folder that a load unpacks the package into, and whether that can work."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.host import TmpdirState
from aotidoctor.readers.releases.shims import release_of

_DEFAULT = "/tmp"  # noqa: S108 - the loader's own
_HEEDED_SINCE = (2, 13)


def heeds_tmpdir(torch: str | None) -> bool:
    """Whether the loader of that version of PyTorch goes by TMPDIR: before 2.13 it unpacks to /tmp in any case."""
    release = release_of(torch or "")
    return release is None or release >= _HEEDED_SINCE


def read_tmpdir(environ: Mapping[str, str], *, needed_bytes: int = 0, torch: str | None = None) -> TmpdirState:
    """State of the folder that the loader of ``torch`` uses: ``$TMPDIR`` or ``/tmp``. Looks only; creates nothing.

    ``needed_bytes`` is what the package takes unpacked.
    """
    fixed = not heeds_tmpdir(torch)
    state = _state(_DEFAULT if fixed else environ.get("TMPDIR") or _DEFAULT)
    return replace(state, fixed=fixed, problem=state.problem_with(needed_bytes))


def _state(path: str) -> TmpdirState:
    if not Path(path).is_dir():
        return TmpdirState(path=path, exists=False, writable=False, problem=_absence(path))
    writable = os.access(path, os.W_OK | os.X_OK)
    try:
        state = os.statvfs(path)
    except OSError as error:
        return TmpdirState(path=path, writable=writable, problem=f"cannot be examined: {error.strerror}")
    noexec = bool(state.f_flag & os.ST_NOEXEC)
    # Some file systems (btrfs) have no fixed number of inodes and report 0 of 0.
    no_inodes = state.f_files > 0 and state.f_favail == 0
    return TmpdirState(
        path=path,
        writable=writable,
        noexec=noexec,
        free_bytes=0 if no_inodes else state.f_bavail * state.f_frsize,
        problem=_problem(writable, noexec, no_inodes),
    )


def _absence(path: str) -> str:
    return "is not a directory" if Path(path).exists() else "does not exist"


def _problem(writable: bool, noexec: bool, no_inodes: bool) -> str | None:
    if not writable:
        return "is not writable"
    if noexec:
        return "is mounted noexec, so no shared object can be mapped from it"
    return "has no free inodes" if no_inodes else None
