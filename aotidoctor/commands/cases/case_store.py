"""Store diagnosed cases in one SQLite file, of version 1 (``PRAGMA user_version``), shared by several processes.

    cases      number, signature (unique), family, cause, stage, title, looked_like
    sightings  case_number, key (unique), at, command, subject, package, sha256, host_class, status, tool
    notes      case_number, key (unique), at, text, solved
    words      FTS5 over signature, cause, title, looked_like, subjects and notes; rowid is the number of the case

Times are RFC 3339 UTC. Every change is one transaction that takes the write lock first, in WAL mode, and waits up to
20 s for others. SQLite's locks do not hold on every network file system: keep a store on a local disk, and merge.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.record import record
from aotidoctor.model.report import CaseNote, CaseRecord, SeenBefore, Sighting

# The tables: made in an empty file, refused in any other.
try:
    import sqlite3
except ImportError as error:
    # A self-built Python may lack it.
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
    """Make the tables in an empty file; other processes may do so at the same time."""
    with suppress(sqlite3.OperationalError):
        # Some file systems cannot; and another process may be doing it right now.
        connection.execute("PRAGMA journal_mode = WAL")
    with _transaction(connection):
        if is_empty(connection):
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


def refuse_others(connection: sqlite3.Connection, path: str) -> None:
    """Raise CannotExamineError for a file of another program or of another version."""
    application, version = (_pragma(connection, name) for name in ("application_id", "user_version"))
    if application != APPLICATION:
        raise CannotExamineError(f"{path}: a SQLite file of a different program; it was not changed")
    if version != VERSION:
        raise CannotExamineError(f"{path}: a store of version {version}; this aotidoctor reads version {VERSION}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether the file is new."""
    found = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return int(found[0]) == 0 and _pragma(connection, "user_version") == 0


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


@contextmanager
def sqlite_errors(path: str) -> Iterator[None]:
    """Turn errors of SQLite, or its absence, into CannotExamineError with the path."""
    if _WITHOUT:
        raise CannotExamineError(f"{path}: {_WITHOUT}")
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:
        raise CannotExamineError(f"{path}: {error}") from error


_WAIT_S = 20.0
_MOST_SUBJECTS = 50
_CASE = ("signature", "family", "cause", "stage", "title", "looked_like")
_WORD = re.compile(r"\w+")
_SIGHTING = ("key", "at", "command", "subject", "package", "sha256", "host_class", "status", "tool")
_ADD_SIGHTING = (
    "INSERT OR IGNORE INTO sightings"
    " (case_number, key, at, command, subject, package, sha256, host_class, status, tool)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_COUNTED = (
    "SELECT number, signature, family, cause, stage, title, looked_like, count(key), coalesce(min(at), ''),"
    " coalesce(max(at), '') FROM cases LEFT JOIN sightings ON case_number = number"
)


@record
class CaseQuery:
    """Conditions on cases, all of which must hold. ``words`` match whole words, ``subject`` a part of a subject."""

    signature: str | None = None
    cause: str | None = None
    subject: str | None = None
    words: str | None = None
    most: int = 100


class CaseStore:
    """An open store. Its methods raise CannotExamineError where the file cannot be used."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def add(self, records: Sequence[CaseRecord]) -> tuple[int, int]:
        """Add ``records`` in one transaction; return how many sightings and notes were new."""
        seen = noted = 0
        connection = self._connection
        with sqlite_errors(self._path), _transaction(connection):
            for record in records:
                # A new cause replaces ``unknown``.
                connection.execute(
                    "INSERT INTO cases (signature, family, cause, stage, title, looked_like) VALUES (?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (signature) DO UPDATE SET cause = excluded.cause, stage = excluded.stage,"
                    " title = excluded.title, looked_like = excluded.looked_like WHERE cases.cause = 'unknown'",
                    [getattr(record, name) for name in _CASE],
                )
                found = connection.execute("SELECT number FROM cases WHERE signature = ?", (record.signature,))
                number = int(found.fetchone()[0])
                before = connection.total_changes
                connection.executemany(
                    _ADD_SIGHTING, [(number, *(getattr(one, name) for name in _SIGHTING)) for one in record.sightings]
                )
                between = connection.total_changes
                connection.executemany(
                    "INSERT OR IGNORE INTO notes (case_number, key, at, text, solved) VALUES (?, ?, ?, ?, ?)",
                    [(number, note_key(record.signature, one), one.at, one.text, one.solved) for one in record.notes],
                )
                seen, noted = seen + between - before, noted + connection.total_changes - between
                self._index(number)
        return seen, noted

    def _index(self, number: int) -> None:
        """Update the searchable words of a case."""
        run = self._connection.execute
        case = run("SELECT signature, cause, title, looked_like FROM cases WHERE number = ?", (number,)).fetchone()
        subjects = run(
            "SELECT DISTINCT subject FROM sightings WHERE case_number = ? LIMIT ?", (number, _MOST_SUBJECTS)
        ).fetchall()
        notes = run("SELECT text FROM notes WHERE case_number = ?", (number,)).fetchall()
        texts = ["\n".join(str(row[0]) for row in rows) for rows in (subjects, notes)]
        run("DELETE FROM words WHERE rowid = ?", (number,))
        run(
            "INSERT INTO words (rowid, signature, cause, title, looked_like, subjects, notes)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, *case, *texts),
        )

    def find(self, query: CaseQuery) -> list[CaseRecord]:
        """The matching cases, the latest first, without their sightings and notes."""
        conditions, values = [], []
        if query.signature is not None:
            conditions.append("(signature = ? OR family = ?)")
            values += [query.signature, query.signature]
        if query.cause is not None:
            conditions.append("cause = ?")
            values.append(query.cause)
        if query.subject is not None:
            conditions.append("number IN (SELECT case_number FROM sightings WHERE instr(lower(subject), lower(?)) > 0)")
            values.append(query.subject)
        if query.words is not None:
            conditions.append("number IN (SELECT rowid FROM words WHERE words MATCH ?)")
            # Each word in quotes, so that none is an operator of the search.
            values.append(" ".join(f'"{word}"*' for word in _WORD.findall(query.words)[:20]) or '""')
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        with sqlite_errors(self._path):
            rows = self._connection.execute(
                f"{_COUNTED}{where} GROUP BY number ORDER BY max(at) DESC, number LIMIT ?", (*values, query.most)
            ).fetchall()
        return [_case(row) for row in rows]

    def whole(self, record: CaseRecord) -> CaseRecord:
        """``record`` with all its sightings and notes, oldest first."""
        with sqlite_errors(self._path):
            seen = self._connection.execute(
                "SELECT key, at, command, subject, package, sha256, host_class, status, tool FROM sightings"
                " WHERE case_number = ? ORDER BY at, key",
                (record.number,),
            ).fetchall()
            notes = self._connection.execute(
                "SELECT text, at, solved FROM notes WHERE case_number = ? ORDER BY at, key", (record.number,)
            ).fetchall()
        return replace(
            record,
            sightings=tuple(Sighting(**dict(zip(_SIGHTING, map(str, row), strict=True))) for row in seen),
            notes=tuple(CaseNote(text=str(row[0]), at=str(row[1]), solved=bool(row[2])) for row in notes),
        )

    def get(self, which: str) -> CaseRecord | None:
        """The case of a number or a signature, or the latest case of a family."""
        column = "number" if which.isdecimal() and len(which) < 19 else "signature"
        with sqlite_errors(self._path):
            row = self._connection.execute(
                f"{_COUNTED} WHERE {column} = ? OR family = ? GROUP BY number ORDER BY max(at) DESC LIMIT 1",
                (which, which),
            ).fetchone()
        return _case(row) if row is not None else None

    def history(self, signature: str, family: str) -> SeenBefore | None:
        """Earlier sightings of a failure: of the exact one, else of its family."""
        return self._history("exact", (signature or None, None)) or self._history("family", (None, family or None))

    def _history(self, of: str, which: tuple[str | None, str | None]) -> SeenBefore | None:
        """The history of a signature or of a family; the other one is None, which equals nothing in SQL."""
        if not any(which):
            return None
        run = self._connection.execute
        with sqlite_errors(self._path):
            row = run(
                "SELECT count(*), min(at), max(at), number FROM sightings JOIN cases ON number = case_number"
                " WHERE signature = ? OR family = ?",
                which,
            ).fetchone()
            notes = run(
                "SELECT text, at, solved FROM notes JOIN cases ON number = case_number"
                " WHERE signature = ? OR family = ? ORDER BY at",
                which,
            ).fetchall()
            if not row[0] and not notes:
                return None
            host = run(
                "SELECT host_class FROM sightings JOIN cases ON number = case_number"
                " WHERE (signature = ? OR family = ?) AND host_class != '' ORDER BY at DESC LIMIT 1",
                which,
            ).fetchone()
        solved = next(
            (CaseNote(text=str(text), at=str(at), solved=True) for text, at, yes in reversed(notes) if yes), None
        )
        return SeenBefore(
            of=of,
            count=int(row[0]),
            since=str(row[1] or ""),
            last=str(row[2] or ""),
            host_class=str(host[0]) if host is not None else "",
            solved=solved,
            notes=len(notes),
            number=int(row[3] or 0),
        )


def _case(row: Sequence[object]) -> CaseRecord:
    number, signature, family, cause, stage, title, looked_like, count, first, last = row
    return CaseRecord(
        number=int(str(number)),
        signature=str(signature),
        family=str(family),
        cause=str(cause),
        stage=str(stage),
        title=str(title),
        looked_like=str(looked_like),
        count=int(str(count)),
        first_seen=str(first),
        last_seen=str(last),
    )


def note_key(signature: str, note: CaseNote) -> str:
    """The key that identifies a note of the case with ``signature``."""
    return digest(signature, note.at, note.text, str(note.solved))


def digest(*parts: str) -> str:
    """Hash ``parts`` to 32 hex digits."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@contextmanager
def open_store(path: str, *, make: bool = False) -> Iterator[CaseStore]:
    """Open the store at ``path``; with ``make`` it is made if it does not exist.

    Raises CannotExamineError if it is missing, is not a store, or is of a newer version.
    """
    if not make and not Path(path).is_file():
        raise CannotExamineError(f"{path}: no such file; expected a store that `--cases` wrote")
    with sqlite_errors(path):
        # Made absolute: an empty path and ":memory:" would be temporary stores.
        connection = sqlite3.connect(Path(path).absolute(), timeout=_WAIT_S, isolation_level=None)
    try:
        with sqlite_errors(path):
            if make and is_empty(connection):
                make_tables(connection)
            refuse_others(connection, path)
        yield CaseStore(path, connection)
    finally:
        connection.close()
