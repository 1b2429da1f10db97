"""Open the SQLite file of a case store, also one that somebody else made.

A file is opened only if its schema is exactly that of a store, so that it has no view, trigger, computed column or
further module that would run. What is left to a hostile file is its rows: time, memory and text per query are bounded.
A file that is only read is left as it is, without files of SQLite beside it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from aotidoctor.model.errors import CannotExamineError

try:
    import sqlite3
except ImportError as error:
    # A self-built Python may lack it.
    _WITHOUT = f"this Python was built without SQLite ({error})"
else:
    _WITHOUT = ""

VERSION = 1
APPLICATION = 0x414F5449
# The tables: made in an empty file, refused in any other.
_TABLES = (
    Path(__file__).with_name("store.sql").read_text(encoding="utf-8").partition("\n")[2].rstrip(";\n").split(";\n")
)
# What ANALYZE and tools that run it add.
_STATISTICS = ("CREATE TABLE sqlite_stat1(tbl,idx,stat)", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)")

MOST_SECONDS = 30.0
"""Processor seconds that SQLite may take until ``StoreFile.renew`` is called."""
MOST_CHARACTERS = 128 << 20
"""Characters that may be read until ``StoreFile.renew`` is called."""
_WAIT_S = 20.0
# What is read of a value: nothing that a store writes is longer.
_LONGEST_TEXT, _LONGEST_KEPT = 4 << 20, 20_000
_STEPS = 10_000


class StoreFile:
    """An open file. Its methods raise CannotExamineError where it cannot be used, or where a limit is reached."""

    def __init__(self, path: str, connection: sqlite3.Connection, stamp: tuple[object, ...] | None) -> None:
        """``stamp`` is the state of a file that is read without its lock."""
        self._path = path
        self._connection = connection
        self._stamp = stamp
        self._seconds = 0.0
        self._characters = 0
        self._since: float | None = None
        connection.set_progress_handler(self._is_late, _STEPS)

    def renew(self) -> None:
        """Begin counting time and characters anew: what was read so far is not held any more."""
        self._seconds, self._characters = 0.0, 0

    def rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """The rows that ``query`` finds."""
        with self.work() as connection:
            found = []
            for row in connection.execute(query, tuple(values)):
                self._characters += sum(len(value) if isinstance(value, (str, bytes)) else 8 for value in row)
                if self._characters > MOST_CHARACTERS:
                    raise CannotExamineError(f"{self._path}: more than {MOST_CHARACTERS:,} characters of cases")
                found.append(tuple(value[:_LONGEST_KEPT] if isinstance(value, str) else value for value in row))
        return found

    def refuse_damage(self) -> None:
        """Raise CannotExamineError for a damaged file, such as one that leads to the same rows again and again."""
        [row] = self.rows("PRAGMA quick_check(1)")
        if row[0] != "ok":
            raise CannotExamineError(f"{self._path}: damaged: {str(row[0])[:200]}")

    @contextmanager
    def work(self, *, change: bool = False) -> Iterator[sqlite3.Connection]:
        """Give the connection, for statements within the limits; with ``change`` they are one transaction."""
        with sqlite_errors(self._path):
            self._since = time.thread_time()
            try:
                if change:
                    self.renew()
                    with _transaction(self._connection):
                        yield self._connection
                else:
                    yield self._connection
            finally:
                self._seconds += time.thread_time() - self._since
                self._since = None
        if self._stamp is not None and self._stamp != _stamp(self._path):
            raise CannotExamineError(f"{self._path}: it was written to while it was read; try again")

    def _is_late(self) -> bool:
        return self._since is not None and self._seconds + time.thread_time() - self._since > MOST_SECONDS


@contextmanager
def open_file(path: str, *, make: bool, write: bool) -> Iterator[StoreFile]:
    """Open the store at ``path``: to be read, with ``write`` to be changed, with ``make`` made if there is none.

    Raises CannotExamineError if it is missing, is not a store, or is of a newer version.
    """
    if not make and not Path(path).is_file():
        raise CannotExamineError(f"{path}: no such file; expected a store that `--cases` wrote")
    if make and os.path.lexists(path) and not Path(path).is_file():
        raise CannotExamineError(f"{path}: observed no regular file, expected a store or a new name")
    # Made absolute: an empty path and ":memory:" would be temporary stores.
    place = f"file:{quote(str(Path(path).absolute()))}?mode="
    stamp = None
    if make or write:
        place += "rwc" if make else "rw"
    elif _has_log(path):
        place += "ro"
    else:
        # Nobody has it open. SQLite would make files beside it to take part in its lock.
        place, stamp = f"{place}ro&immutable=1", _stamp(path)
    with sqlite_errors(path):
        connection = sqlite3.connect(place, timeout=_WAIT_S, isolation_level=None, uri=True)
    try:
        file = StoreFile(path, connection, stamp)
        with file.work():
            _restrict(connection, write=make or write)
            if make and _is_empty(connection):
                _make_tables(connection)
            _refuse_others(connection, path)
        yield file
    finally:
        connection.close()


def _has_log(path: str) -> bool:
    """Whether changes lie beside the file that are not in it yet."""
    for ending in ("-wal", "-journal"):
        with suppress(OSError):
            if Path(path + ending).stat().st_size:
                return True
    return False


def _stamp(path: str) -> tuple[object, ...]:
    with sqlite_errors(path):
        status = Path(path).stat()
        return status.st_ino, status.st_size, status.st_mtime_ns, _has_log(path)


def _restrict(connection: sqlite3.Connection, *, write: bool) -> None:
    """Bound what a hostile file can make SQLite do, before anything of it is read."""
    for pragma in (
        "trusted_schema = OFF",
        "cell_size_check = ON",
        f"query_only = {'OFF' if write else 'ON'}",
        "foreign_keys = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
    if sys.version_info >= (3, 11):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file; other processes may do so at the same time."""
    with suppress(sqlite3.OperationalError):
        # Some file systems cannot; and another process may be doing it right now.
        connection.execute("PRAGMA journal_mode = WAL")
    with _transaction(connection):
        if _is_empty(connection):
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Make the changes in the body as one transaction, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _refuse_others(connection: sqlite3.Connection, path: str) -> None:
    """Raise CannotExamineError for a file of another program, of another version, or with more in it than a store."""
    application, version = (_pragma(connection, name) for name in ("application_id", "user_version"))
    if application != APPLICATION:
        raise CannotExamineError(f"{path}: a SQLite file of a different program; it was not changed")
    if version != VERSION:
        raise CannotExamineError(f"{path}: a store of version {version}; this aotidoctor reads version {VERSION}")
    expected = _expected_schema()
    # One row more than there can be shows that there is one too many.
    seen = set()
    for kind, name, text in connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT ?", (len(expected) + 1,)
    ):
        seen.add(plain := _plain(str(text)))
        if plain not in expected:
            raise CannotExamineError(
                f"{path}: its schema has the {kind} {str(name)[:60]!r}, which no store has; it was not changed"
            )
    missing = expected - seen - set(_STATISTICS)
    if missing:
        raise CannotExamineError(f"{path}: its schema lacks {min(missing)[:60]!r}; it was not changed")


def _expected_schema() -> set[str]:
    """The statements of a new store, with those of the tables that hold its words."""
    model = sqlite3.connect(":memory:")
    try:
        for statement in _TABLES:
            model.execute(statement)
        rows = model.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    finally:
        model.close()
    return {*(_plain(str(row[0])) for row in rows), *_STATISTICS}


def _plain(text: str) -> str:
    return " ".join(text.split())


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Whether the file is new."""
    found = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    return found is None and _pragma(connection, "user_version") == 0


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


@contextmanager
def sqlite_errors(path: str) -> Iterator[None]:
    """Turn errors of SQLite, or its absence, into CannotExamineError with the path."""
    if _WITHOUT:
        raise CannotExamineError(f"{path}: {_WITHOUT}")
    try:
        yield
    except MemoryError as error:
        raise CannotExamineError(f"{path}: out of memory") from error
    except (sqlite3.Error, UnicodeError, OSError) as error:
        if str(error) == "interrupted":
            raise CannotExamineError(f"{path}: it takes more than {MOST_SECONDS:g} s of processor time") from error
        raise CannotExamineError(f"{path}: {error}") from error
