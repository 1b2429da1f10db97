"""Cache packages that this program compiled, by content, and the answers of a bisect.

$XDG_CACHE_HOME/aotidoctor/            ~/.cache/aotidoctor without it
    recompiled/<key>/model.pt2         with facts.json: what the compile reported, and the package's digest
    compiler/                          the compiler's own: precompiled headers, what it learnt of the CPU
    bisect/<key>.json                  answers of a bisect

An entry appears by rename and is checked against its digest when it is used, so a half-written or damaged one is
made again. A cached package is executed: every folder is for this user alone, whatever the umask, and entries that
others own or can write are not used. The oldest entries are removed above a total size. Nothing here is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from aotidoctor.files import is_mine
from aotidoctor.model.record import JsonObject


def make_private(folder: Path, root: Path) -> None:
    """Make ``folder`` and each level of it from ``root`` on, mode 0700. Raises OSError.

    Folders above ``root`` are made as usual. A level that another user owns raises PermissionError.
    """
    root.parent.mkdir(parents=True, exist_ok=True)
    for level in _levels(folder, root):
        level.mkdir(mode=0o700, exist_ok=True)
        found = level.lstat()
        if not stat.S_ISDIR(found.st_mode) or not is_mine(found):
            raise PermissionError(f"{level} is not a folder of this user")
        if stat.S_IMODE(found.st_mode) != 0o700:
            level.chmod(0o700)


def close_to_others(path: Path) -> None:
    """Remove the permissions of other users on ``path`` and its content. Raises OSError."""
    for one in (path, *(path.rglob("*") if path.is_dir() else ())):
        if not one.is_symlink():
            one.chmod(stat.S_IMODE(one.lstat().st_mode) & 0o700)


def is_private(path: Path, root: Path) -> bool:
    """Whether only this user can have written ``path``, a file or folder below ``root``, and its content."""
    inside = path.rglob("*") if path.is_dir() and not path.is_symlink() else ()
    return all(_is_ours(one) for one in (*_levels(path, root), *inside))


def _levels(path: Path, root: Path) -> list[Path]:
    """Folders from ``root`` to ``path``, outermost first."""
    between = [path, *path.parents]
    return between[: between.index(root) + 1][::-1]


def _is_ours(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    kind_is_plain = stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)
    return kind_is_plain and is_mine(found) and not stat.S_IMODE(found.st_mode) & 0o022


# Cache.
PACKAGE, FACTS = "model.pt2", "facts.json"
LIMIT = 2 << 30
COMPILER_LIMIT = 512 << 20
# Variables with these prefixes affect the result of a compile.
_VARIABLES = ("TORCHINDUCTOR_", "AOT_INDUCTOR_", "AOTINDUCTOR_", "TORCH_BISECT_", "CXX", "CC", "CFLAGS", "CXXFLAGS")
# Expensive to make again, and the same for every model.
_PERMANENT = frozenset({"precompiled_headers", "locks"})


class CachedCompile(NamedTuple):
    """An entry: path of its package, the facts that were stored with it, and the seconds it took now."""

    package: Path
    facts: JsonObject
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CompileCache:
    """The cache below ``root``, which need not exist yet."""

    root: Path

    @property
    def compiler(self) -> Path:
        """Directory for the compiler's own files."""
        return self.root / "compiler"

    def take(self, key: str) -> CachedCompile | None:
        """Look up the entry of ``key``; None when there is none. A damaged one is removed."""
        folder = self._folder(key)
        facts = _read(folder / FACTS) if is_private(folder, self.root) else None
        if facts is None or facts.get("sha256") != digest_of(folder / PACKAGE):
            shutil.rmtree(folder, ignore_errors=True)
            return None
        with suppress(OSError):
            os.utime(folder)
        return CachedCompile(folder / PACKAGE, facts)

    def begin(self, key: str) -> Path:
        """Path for the package of a compile: in a private folder, which ``commit`` or ``discard`` removes.

        Raises:
            OSError: the cache cannot be written to.
        """
        folder = self.root / "recompiled" / f".{key}.{os.urandom(6).hex()}"
        make_private(folder, self.root)
        make_private(self.compiler, self.root)
        return folder / PACKAGE

    def commit(self, key: str, package: Path, facts: JsonObject) -> CachedCompile:
        """Store the package at a path from ``begin`` as the entry of ``key``.

        Raises:
            OSError: there is no such package, or the disk is full.
        """
        digest = digest_of(package)
        if digest is None:
            raise FileNotFoundError(f"the compiler left no package at {package}")
        stored: JsonObject = {**facts, "sha256": digest}
        (package.parent / FACTS).write_text(json.dumps(stored), encoding="utf-8")
        close_to_others(package.parent)
        target = self._folder(key)
        shutil.rmtree(target, ignore_errors=True)
        package.parent.rename(target)
        entries = [entry for entry in (self.root / "recompiled").iterdir() if entry != target]
        _drop_oldest(entries, LIMIT - _size(target))
        if self.compiler.is_dir():
            _drop_oldest([entry for entry in self.compiler.iterdir() if entry.name not in _PERMANENT], COMPILER_LIMIT)
            _drop_oldest(list((self.compiler / "precompiled_headers").glob("*/*.gch")), 2 * COMPILER_LIMIT)
        return CachedCompile(target / PACKAGE, stored)

    def discard(self, package: Path, *, headers: bool) -> None:
        """Remove the files of a compile. ``headers``: it was killed, so a header may be incomplete."""
        with suppress(OSError):
            began = package.parent.stat().st_mtime
            for header in (self.compiler / "precompiled_headers").rglob("*.gch") if headers else ():
                if header.stat().st_mtime >= began:
                    header.unlink()
        shutil.rmtree(package.parent, ignore_errors=True)

    def answers(self, key: str) -> dict[str, str]:
        """Answers of an earlier bisect."""
        stored = self.root / "bisect" / f"{key}.json"
        found = (_read(stored) if is_private(stored, self.root) else None) or {}
        return {name: answer for name, answer in found.items() if isinstance(answer, str)}

    def remember(self, key: str, answers: Mapping[str, str]) -> None:
        """Store the answers; without a writable cache the next call starts again."""
        with suppress(OSError):
            folder = self.root / "bisect"
            make_private(folder, self.root)
            new = folder / f".{key}.{os.urandom(6).hex()}"
            new.write_text(json.dumps(dict(answers)), encoding="utf-8")
            close_to_others(new)
            new.replace(folder / f"{key}.json")

    def _folder(self, key: str) -> Path:
        return self.root / "recompiled" / key


def open_cache(environ: Mapping[str, str] | None = None) -> CompileCache:
    """Open the user's cache."""
    variables = os.environ if environ is None else environ
    home = variables.get("XDG_CACHE_HOME") or str(Path(variables.get("HOME") or "~").expanduser() / ".cache")
    return CompileCache(Path(home).absolute() / "aotidoctor")


def key_of(*parts: JsonObject | str | None, files: tuple[str | None, ...] = ()) -> str:
    """Key for these parts, the content of ``files`` and this environment's settings of the compiler."""
    settings = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    contents = [None if name is None else digest_of(Path(name)) or name for name in files]
    text = json.dumps([parts, contents, settings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def compiler_of(tools: Mapping[str, str | None]) -> str | None:
    """Identify the C++ compiler that Inductor would call, by path, size and time; None without one."""
    name = os.environ.get("CXX")
    path = shutil.which(name) if name else next((tools[one] for one in ("g++", "clang++") if tools.get(one)), None)
    if path is None:
        return None
    try:
        real = Path(path).resolve(strict=True)
        return f"{real} {real.stat().st_size} {real.stat().st_mtime_ns}"
    except OSError:
        return None


def digest_of(path: Path) -> str | None:
    """SHA-256 of a file; None when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    except OSError:
        return None
    return digest.hexdigest()


def _read(path: Path) -> JsonObject | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _size(path: Path) -> int:
    total = 0
    for item in (path, *path.rglob("*")):
        with suppress(OSError):
            total += item.stat().st_size
    return total


def _drop_oldest(entries: list[Path], limit: int) -> None:
    """Remove entries, the ones longest unused first, until the rest is within ``limit`` bytes."""
    dated = []
    for entry in entries:
        with suppress(OSError):
            dated.append((entry.stat().st_mtime, _size(entry), entry))
    left = sum(size for _, size, _ in dated)
    for _, size, entry in sorted(dated):
        if left <= limit:
            return
        shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
        left -= size
