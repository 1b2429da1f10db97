"""The tables of a store: made in an empty file, refused in any other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aotidoctor.model.errors import CannotExamineError

try:
    import sqlite3
except ImportError as error:
    # A Python that somebody built himself may lack it.
    _WITHOUT = f"this Python was built without SQLite ({error})"
else:
    _WITHOUT = ""

VERSION = 1
APPLICATION = 0x414F5449
_TABLES = (
    """CREATE TABLE cases (
        number INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE, family TEXT NOT NULL, cause TEXT NOT NULL,
        stage TEXT NOT NULL, title TEXT NOT NULL, looked_like TEXT NOT NULL)""",
    """CREATE TABLE sightings (
        case_number INTEGER NOT NULL REFERENCES cases (number), key TEXT NOT NULL UNIQUE, at TEXT NOT NULL,
        command TEXT NOT NULL, subject TEXT NOT NULL, package TEXT NOT NULL, sha256 TEXT NOT NULL,
        host_class TEXT NOT NULL, status TEXT NOT NULL, tool TEXT NOT NULL)""",
    """CREATE TABLE notes (
        case_number INTEGER NOT NULL REFERENCES cases (number), key TEXT NOT NULL UNIQUE, at TEXT NOT NULL,
        text TEXT NOT NULL, solved INTEGER NOT NULL)""",
    "CREATE INDEX cases_by_family ON cases (family)",
    "CREATE INDEX sightings_by_case ON sightings (case_number, at)",
    "CREATE INDEX notes_by_case ON notes (case_number, at)",
    "CREATE VIRTUAL TABLE words USING fts5 (signature, cause, title, looked_like, subjects, notes)",
)


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, which other processes may be about to do as well."""
    with suppress(sqlite3.OperationalError):
        # Where another process is just making it, it has been done; some file systems cannot.
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if is_empty(connection):
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def refuse_others(connection: sqlite3.Connection, path: str) -> None:
    """Raise CannotExamineError for a file that is not ours, or of another version."""
    application, version = (_pragma(connection, name) for name in ("application_id", "user_version"))
    if application != APPLICATION:
        raise CannotExamineError(f"{path}: a SQLite file of a different program; it was not changed")
    if version != VERSION:
        raise CannotExamineError(f"{path}: a store of version {version}; this aotidoctor reads version {VERSION}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether nobody has written anything there."""
    found = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return int(found[0]) == 0 and _pragma(connection, "user_version") == 0


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


@contextmanager
def told(path: str) -> Iterator[None]:
    """What SQLite raises, or that there is none, as CannotExamineError with the path."""
    if _WITHOUT:
        raise CannotExamineError(f"{path}: {_WITHOUT}")
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:
        raise CannotExamineError(f"{path}: {error}") from error
