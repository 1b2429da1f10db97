"""Store answers by content: an item is judged once, also under another path or in another results folder.

Two tables in one SQLite file, which several processes may use at once: the digests of files by path, size and times (so
that a file which has not been touched need not be read), and the answers by key. Where the file cannot be used, or is
damaged, the items are judged.
"""

from __future__ import annotations

import os
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.files import open_regular

try:
    import sqlite3
except ImportError as error:
    # A Python that somebody built himself may lack it.
    _WITHOUT = f"this Python was built without SQLite ({error})"
else:
    _WITHOUT = ""

if TYPE_CHECKING:
    from typing_extensions import Self

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
