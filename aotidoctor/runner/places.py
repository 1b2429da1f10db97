"""Where a child run keeps its files: one directory per runner, one below it per run.

    <work>/aotidoctor-XXXX/            output of the forkserver; removed by close(), or by it when the parent was killed
        R1-token/                      request.json channel.jsonl stdout stderr cwd/ tmp/
        scratch/                       what one run keeps for a later one

The child's TMPDIR lies in the directory that TMPDIR names for the user, so that a full, read-only or ``noexec`` one
shows as it does for the user; everything else lies in a directory that works.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.child_protocol import PRIVATE
from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.record import record

_ENOUGH = 64 * 1024 * 1024
# What mkdtemp makes of the name that stands in PyTorch up to 2.12.
_UNPACKED = re.compile(r"/tmp/[A-Za-z0-9]{6}")  # noqa: S108


@record
class RunDir:
    """Directory of one run. ``tmp`` is the child's TMPDIR; ``foreign_tmp`` is set when it lies outside ``path``."""

    path: Path
    token: str
    tmp: str
    foreign_tmp: Path | None = None

    def file(self, name: str) -> Path:
        """Path of a file of this run."""
        return self.path / name

    def remove(self) -> None:
        """Remove everything of this run, read-only directories that the child made included."""
        for path in (self.path, self.foreign_tmp):
            if path is not None:
                remove_tree(path)


def make_work_dir(environ: Mapping[str, str]) -> Path:
    """Make the runner's own directory in the first good place.

    Raises:
        OSError: no place can be written to.
    """
    candidates = [environ.get("TMPDIR") or "/tmp", "/tmp", "/var/tmp", "/dev/shm", current_directory()]  # noqa: S108
    good = [place for place in candidates if _is_good(place)]
    import tempfile  # noqa: PLC0415 - a command without runs should not pay for it

    for place in [*good, *candidates]:
        with suppress(OSError):
            return Path(tempfile.mkdtemp(prefix=PRIVATE, dir=Path(place).absolute()))
    raise OSError(f"no directory for temporary files among {', '.join(candidates)}")


def current_directory() -> str:
    """The directory this process is in; ``/`` when that has been removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return "/"


def make_run_dir(work_dir: Path, run_id: str, tmp_base: str | None) -> RunDir:
    """Make the directory and the empty files of one run; ``tmp_base`` is the child's TMPDIR as the user set it."""
    token = os.urandom(8).hex()
    path = work_dir / f"{run_id}-{token}"
    for directory in (path, path / "cwd", path / "tmp"):
        directory.mkdir(mode=0o700)
    for name in ("channel.jsonl", "stdout", "stderr"):
        (path / name).touch(mode=0o600, exist_ok=False)
    own = RunDir(path=path, token=token, tmp=str(path / "tmp"))
    base = Path(tmp_base or "/tmp").absolute()  # noqa: S108 - where C++ and Python go without TMPDIR
    if work_dir.parent == base:
        return own
    foreign = base / f"{PRIVATE}{token}"
    try:
        foreign.mkdir(mode=0o700)
    except OSError:
        # The user's own TMPDIR is broken; the child shall meet it as it is.
        return replace(own, tmp=str(base))
    return replace(own, tmp=str(foreign), foreign_tmp=foreign)


@contextmanager
def lone_run_dir(environ: Mapping[str, str], tmp_base: str | None) -> Iterator[RunDir]:
    """The directory of a run that no runner made; it goes at the end of the block. Raises OSError."""
    work = make_work_dir(environ)
    try:
        run_dir = make_run_dir(work, "W1", tmp_base)
        try:
            yield run_dir
        finally:
            run_dir.remove()
    finally:
        remove_tree(work)


def remove_tree(path: Path) -> None:
    """Remove ``path`` and what is below, making directories writable where needed; what cannot go, stays."""
    import shutil  # noqa: PLC0415 - likewise

    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        for parent, _, _ in os.walk(path):
            with suppress(OSError):
                Path(parent).chmod(0o700)
        shutil.rmtree(path, ignore_errors=True)


def remove_unpacked(folders: JsonValue) -> None:
    """Remove what the loader of an older PyTorch unpacked to ``/tmp/XXXXXX``, as a child told of it."""
    for folder in folders if isinstance(folders, list) else ():
        if isinstance(folder, str) and _UNPACKED.fullmatch(folder) and _is_ours(folder):
            remove_tree(Path(folder))


def _is_ours(folder: str) -> bool:
    try:
        facts = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()


def _is_good(place: str) -> bool:
    """Whether ``place`` is a directory that can be written to, with room, from which code can be loaded."""
    try:
        facts = os.statvfs(place)
    except OSError:
        return False
    room = facts.f_bavail * facts.f_frsize >= _ENOUGH
    return room and not facts.f_flag & os.ST_NOEXEC and os.access(place, os.W_OK | os.X_OK)
