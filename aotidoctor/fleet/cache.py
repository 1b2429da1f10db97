"""Store answers by content: an item is judged once, also under another path or in another results folder.

The key of an answer is made of the contents of files, the host, the settings, and the tool itself. Settings are the
options of the command line that are the same for every item.

Two tables in one SQLite file, which several processes may use at once: the digests of files by path, size and times (so
that a file which has not been touched need not be read), and the answers by key. Where the file cannot be used, or is
damaged, the items are judged.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.files import O_BINARY, O_CLOEXEC, O_NONBLOCK, open_regular, read_range
from aotidoctor.fleet.items import EXECUTING, FleetItem
from aotidoctor.model.case import Host, TmpdirState
from aotidoctor.model.record import as_object, record, to_json, values_of
from aotidoctor.model.report import playbook_folder
from aotidoctor.remote.remote_files import clean_url, is_url
from aotidoctor.version import __version__

try:
    import sqlite3
except ImportError as error:
    # A Python that somebody built himself may lack it.
    _WITHOUT = f"this Python was built without SQLite ({error})"
else:
    _WITHOUT = ""

if TYPE_CHECKING:
    from typing_extensions import Self


# The key.
@record
class Settings:
    """``timeout`` and ``item_timeout`` are the limits of a child run and of an item, in seconds.

    ``memory_limit`` is in bytes. ``triton`` is the release of the server.
    """

    fail_on: str = "error"
    redact: bool = True
    timeout: float = 60.0
    item_timeout: float = 120.0
    memory_limit: int | None = None
    repeat: int = 1
    generate: bool = False
    trust_pickle: bool = False
    model_name: str | None = None
    device: str | None = None
    triton: str | None = None


# Digests. Before the digest of a version, which is none of content.
DIGEST_VERSION = "version:"
# A larger file is known by its size, its time and its ends: a batch is not what reads all of it.
MOST_HASHED = 1 << 30
_CHUNK = 1 << 20
# Of a folder: a model repository has fewer files than that.
MOST_FILES = 20_000
# What changes from one moment to the next, and is no part of what a machine is.
_OF_THE_MOMENT = frozenset({"memory_available"})


class NotReadableError(OSError):
    """A path is no file and no folder that can be read to its end."""


def content_digest(path: str) -> tuple[str, int]:
    """The sha256 of a file, and its size; of a folder, those of the names and contents below it.

    A bare library has none: the files beside it decide, too. That of a URL covers the version that the server reports;
    that of a file beyond ``MOST_HASHED`` and of a folder with one is of a version, too.

    Raises OSError and CannotExamineError.
    """
    if is_url(path):
        from aotidoctor.remote.remote_files import open_remote

        file = open_remote(path)
        if file.version is None or file.size is None:
            raise NotReadableError(f"{clean_url(path)}: the server does not report the version of the file")
        return DIGEST_VERSION + hashlib.sha256(f"{clean_url(path)}\0{file.version}".encode()).hexdigest(), file.size
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return _folder_digest(path)
    descriptor = os.open(path, os.O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_BINARY)
    with open(descriptor, "rb", buffering=0) as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotReadableError(f"{path} is not a regular file")
        if status.st_size > MOST_HASHED:
            ends = stream.read(_CHUNK) + read_range(descriptor, _CHUNK, status.st_size - _CHUNK)
            facts = f"{status.st_size}\0{status.st_mtime_ns}\0".encode()
            return DIGEST_VERSION + hashlib.sha256(facts + ends).hexdigest(), status.st_size
        digest, size = hashlib.sha256(), 0
        while data := stream.read(_CHUNK):
            if not size and data.startswith(b"\x7fELF"):
                raise NotReadableError(f"{path} is examined with the files next to it")
            digest.update(data)
            size += len(data)
        return digest.hexdigest(), size


def _folder_digest(path: str) -> tuple[str, int]:
    digest, total, number, prefix = hashlib.sha256(), 0, 0, ""
    for here, folders, names in os.walk(path):
        folders.sort()
        for file in (os.path.join(here, name) for name in sorted(names)):
            if not os.path.isfile(file):
                continue
            number += 1
            if number > MOST_FILES:
                raise NotReadableError(f"{path} has more than {MOST_FILES:,} files")
            one, size = content_digest(file)
            prefix = DIGEST_VERSION if one.startswith(DIGEST_VERSION) else prefix
            digest.update(f"{os.path.relpath(file, path)}\0{one}\0".encode("utf-8", "surrogateescape"))
            total += size
    return prefix + digest.hexdigest(), total


@lru_cache(maxsize=1)
def tool_digest() -> str:
    """The version with the contents of the code and the playbooks: what judges."""
    digest = hashlib.sha256(__version__.encode())
    code = Path(__file__).parent.parent
    for root, ending in ((code, ".py"), (code, ".txt"), (playbook_folder() or code, ".md")):
        for file in sorted(root.rglob(f"*{ending}")):
            digest.update(f"{file.relative_to(root)}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def host_digest(host: Host) -> str:
    """The sha256 of the lasting facts about a machine, without its state of the moment."""
    steady = {name: value for name, value in values_of(host).items() if name not in _OF_THE_MOMENT}
    if isinstance(host.tmpdir, TmpdirState):
        steady["tmpdir"] = replace(host.tmpdir, free_bytes=None)
    return hashlib.sha256(json.dumps(to_json(steady), sort_keys=True).encode()).hexdigest()


def answer_key(item: FleetItem, contents: Sequence[str], settings: Settings, host: str) -> str:
    """The digest of everything that decides the answer. ``contents`` are the digests of ``item.files``, in order."""
    # The time that an item may take decides nothing but whether there is an answer.
    options = {name: value for name, value in as_object(to_json(settings)).items() if name != "item_timeout"}
    used = options if item.command in EXECUTING else {**options, "timeout": None, "repeat": None}
    given = [name is not None for name in (item.package, item.inputs, item.data, item.reference, item.setup)]
    # The end of its name may decide what a file is.
    ends = [os.path.splitext(path)[1] for path in item.files]
    decisive = [item.command, list(contents), given, ends, used, host, tool_digest()]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


# The file.
# The format of the file; another one is removed.
CACHE_VERSION = 1
LARGEST = 1 << 30
# A file that was written just now may be written again without a change of its times.
_SETTLED_S = 2.0
_COMMIT_S, _BUSY_S = 1.0, 10.0
_MAGIC = b"SQLite format 3\0"
_TABLES = """
CREATE TABLE IF NOT EXISTS digests (
    path TEXT PRIMARY KEY, stamp TEXT NOT NULL, sha256 TEXT NOT NULL, size INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    key TEXT NOT NULL, item TEXT NOT NULL, healthy INTEGER NOT NULL, used INTEGER NOT NULL,
    line TEXT NOT NULL, report BLOB, PRIMARY KEY (key, item)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_use ON answers (used);
"""


class Cache:
    """A context manager. ``path`` is the file; None for a cache that keeps nothing."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._base: sqlite3.Connection | None = None
        self._committed = time.monotonic()
        self._now = int(time.time())
        self.problem: str | None = None

    def __enter__(self) -> Self:
        """Open it; what keeps it from being used is in ``problem``."""
        if self._path is not None and _WITHOUT:
            self._fail(OSError(_WITHOUT))
        elif self._path is not None:
            try:
                self._base = _open(self._path)
            except (sqlite3.Error, OSError) as error:
                self._fail(error)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Commit, and remove the oldest answers where the file is too large."""
        base = self._base
        if base is None:
            return
        with suppress(sqlite3.Error):
            _prune(base)
            base.commit()
        base.close()

    def digest(self, path: str, status: os.stat_result) -> tuple[str, int] | None:
        """The sha256 and size of a file that has not been touched since they were taken."""
        row = self._ask("SELECT sha256, size FROM digests WHERE path = ? AND stamp = ?", (_place(path), _stamp(status)))
        return (str(row[0]), int(str(row[1]))) if row is not None else None

    def keep_digest(self, path: str, status: os.stat_result, sha256: str, size: int) -> None:
        """Remember them, where the file's times would tell a later change."""
        if time.time() - max(status.st_mtime, status.st_ctime) > _SETTLED_S:
            self._do("INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?)", (_place(path), _stamp(status), sha256, size))

    def answer(self, key: str, item: str) -> tuple[str, bytes | None, bool] | None:
        """The line of ``key``, its report, and whether it is this very item's.

        One of another item is given only where it is healthy: a report names the paths that it is about.
        """
        row = self._ask(
            "SELECT line, report, item FROM answers WHERE key = ? AND (item = ? OR healthy) ORDER BY item = ? DESC",
            (key, item, item),
        )
        if row is None:
            return None
        self._do(
            "UPDATE answers SET used = ? WHERE key = ? AND item = ? AND used < ?",
            (self._now, key, row[2], self._now - 3600),
        )
        report = row[1]
        try:
            body = zlib.decompress(report) if isinstance(report, bytes) else None
        except zlib.error:
            return None
        return str(row[0]), body, row[2] == item

    def keep_answer(self, key: str, item: str, line: str, report: bytes | None, *, healthy: bool) -> None:
        """Remember an answer."""
        packed = None if report is None else zlib.compress(report, 3)
        row = (key, item, int(healthy), self._now, line, packed)
        self._do("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", row)

    def _ask(self, query: str, values: tuple[object, ...]) -> tuple[object, ...] | None:
        if self._base is None:
            return None
        try:
            row: tuple[object, ...] | None = self._base.execute(query, values).fetchone()
        except sqlite3.Error as error:
            self._fail(error)
            return None
        return row

    def _do(self, command: str, values: tuple[object, ...]) -> None:
        if self._base is None:
            return
        try:
            self._base.execute(command, values)
            if time.monotonic() - self._committed > _COMMIT_S:
                self._base.commit()
                self._committed = time.monotonic()
        except sqlite3.Error as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Go on without the cache."""
        self.problem = f"the cache {self._path} cannot be used: {error}"
        if self._base is not None:
            self._base.close()
            self._base = None


def _open(path: str) -> sqlite3.Connection:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    try:
        return _open_database(path)
    except sqlite3.DatabaseError as error:
        # A file of another kind is somebody's: it is left as it is.
        if isinstance(error, sqlite3.OperationalError) or not _is_cache(path):
            raise
        # A damaged one: nothing else of value is stored there.
        for ending in ("", "-wal", "-shm"):
            Path(path + ending).unlink(missing_ok=True)
        return _open_database(path)


def _is_cache(path: str) -> bool:
    """Whether it is a database by its first bytes, and no link to one."""
    with suppress(OSError), open_regular(path) as stream:
        return stream.read(len(_MAGIC)) == _MAGIC and not Path(path).is_symlink()
    return False


def _open_database(path: str) -> sqlite3.Connection:
    base = sqlite3.connect(path, timeout=_BUSY_S)
    try:
        _demand_cache(base)
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = NORMAL")
        version = base.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, CACHE_VERSION):
            base.executescript("DROP TABLE IF EXISTS digests; DROP TABLE IF EXISTS answers;")
        base.executescript(_TABLES)
        base.execute(f"PRAGMA user_version = {CACHE_VERSION}")
        base.commit()
    except BaseException:
        base.close()
        raise
    return base


def _demand_cache(base: sqlite3.Connection) -> None:
    tables = {row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables - {"digests", "answers"}:
        raise sqlite3.OperationalError("it is the database of something else")


def _prune(base: sqlite3.Connection) -> None:
    """Remove the least recently used answers where the file is too large."""
    pages, size, free = (
        base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size", "freelist_count")
    )
    if (pages - free) * size <= LARGEST:
        return
    count = base.execute("SELECT count(*) FROM answers").fetchone()[0]
    base.execute(
        "DELETE FROM answers WHERE (key, item) IN (SELECT key, item FROM answers ORDER BY used LIMIT ?)",
        (count // 4 + 1,),
    )
    base.execute("DELETE FROM digests")


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_dev}.{status.st_ino}.{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}"


def _place(path: str) -> str:
    return (
        os.path.normpath(Path(path).absolute()).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    )
