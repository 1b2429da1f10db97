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
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from aotidoctor.commands.cases.store_file import StoreFile, open_file
from aotidoctor.model.case import CaseNote, CaseRecord, SeenBefore, Sighting
from aotidoctor.model.record import record

if TYPE_CHECKING:
    from sqlite3 import Connection

# Of a case, what its words are from.
_MOST_SUBJECTS, _MOST_NOTES = 50, 100
_PAGE, _MANY = 200, 100_000
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

    def __init__(self, file: StoreFile) -> None:
        self._file = file

    def add(self, records: Sequence[CaseRecord]) -> tuple[int, int]:
        """Add ``records`` in one transaction; return how many sightings and notes were new."""
        seen = noted = 0
        with self._file.work(change=True) as connection:
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
                _index(connection, number)
        return seen, noted

    def find(self, query: CaseQuery) -> list[CaseRecord]:
        """The matching cases, the latest first, without their sightings and notes."""
        if query.most > _MANY:
            self._file.refuse_damage()
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
        rows = self._file.rows(
            f"{_COUNTED}{where} GROUP BY number ORDER BY max(at) DESC, number LIMIT ?", (*values, query.most)
        )
        return [_case(row) for row in rows]

    def pages(self) -> Iterator[list[CaseRecord]]:
        """All cases by number with their sightings and notes, a few at a time; each page has limits of its own."""
        last = 0
        self._file.refuse_damage()
        while True:
            self._file.renew()
            rows = self._file.rows(
                f"{_COUNTED} WHERE number > ? GROUP BY number ORDER BY number LIMIT ?", (last, _PAGE)
            )
            if not rows:
                return
            yield [self.whole(_case(row)) for row in rows]
            last = int(str(rows[-1][0]))

    def whole(self, record: CaseRecord) -> CaseRecord:
        """``record`` with all its sightings and notes, oldest first."""
        seen = self._file.rows(
            "SELECT key, at, command, subject, package, sha256, host_class, status, tool FROM sightings"
            " WHERE case_number = ? ORDER BY at",
            (record.number,),
        )
        notes = self._file.rows(
            "SELECT key, at, text, solved FROM notes WHERE case_number = ? ORDER BY at", (record.number,)
        )
        # An index has them by time. SQLite would sort the rest by reading all of it into memory before the first row.
        for rows in (seen, notes):
            rows.sort(key=lambda row: (str(row[1]), str(row[0])))
        return replace(
            record,
            sightings=tuple(Sighting(**dict(zip(_SIGHTING, map(str, row), strict=True))) for row in seen),
            notes=tuple(CaseNote(text=str(text), at=str(at), solved=bool(solved)) for _, at, text, solved in notes),
        )

    def get(self, which: str) -> CaseRecord | None:
        """The case of a number or a signature, or the latest case of a family."""
        column = "number" if which.isdecimal() and len(which) < 19 else "signature"
        rows = self._file.rows(
            f"{_COUNTED} WHERE {column} = ? OR family = ? GROUP BY number ORDER BY max(at) DESC LIMIT 1", (which, which)
        )
        return _case(rows[0]) if rows else None

    def history(self, signature: str, family: str) -> SeenBefore | None:
        """Earlier sightings of a failure: of the exact one, else of its family."""
        return self._history("exact", (signature or None, None)) or self._history("family", (None, family or None))

    def _history(self, of: str, which: tuple[str | None, str | None]) -> SeenBefore | None:
        """The history of a signature or of a family; the other one is None, which equals nothing in SQL."""
        if not any(which):
            return None
        run = self._file.rows
        [row] = run(
            "SELECT count(*), min(at), max(at), number FROM sightings JOIN cases ON number = case_number"
            " WHERE signature = ? OR family = ?",
            which,
        )
        notes = run(
            "SELECT text, at, solved FROM notes JOIN cases ON number = case_number"
            " WHERE signature = ? OR family = ? ORDER BY at",
            which,
        )
        if not row[0] and not notes:
            return None
        hosts = run(
            "SELECT host_class FROM sightings JOIN cases ON number = case_number"
            " WHERE (signature = ? OR family = ?) AND host_class != '' ORDER BY at DESC LIMIT 1",
            which,
        )
        solved = next(
            (CaseNote(text=str(text), at=str(at), solved=True) for text, at, yes in reversed(notes) if yes), None
        )
        return SeenBefore(
            of=of,
            count=int(str(row[0])),
            since=str(row[1] or ""),
            last=str(row[2] or ""),
            host_class=str(hosts[0][0]) if hosts else "",
            solved=solved,
            notes=len(notes),
            number=int(str(row[3] or 0)),
        )


def _index(connection: Connection, number: int) -> None:
    """Update the searchable words of a case."""
    run = connection.execute
    case = run("SELECT signature, cause, title, looked_like FROM cases WHERE number = ?", (number,)).fetchone()
    subjects = run(
        "SELECT DISTINCT subject FROM sightings WHERE case_number = ? LIMIT ?", (number, _MOST_SUBJECTS)
    ).fetchall()
    notes = run(
        "SELECT text FROM notes WHERE case_number = ? ORDER BY at DESC LIMIT ?", (number, _MOST_NOTES)
    ).fetchall()
    texts = ["\n".join(str(row[0]) for row in rows) for rows in (subjects, notes)]
    run("DELETE FROM words WHERE rowid = ?", (number,))
    run(
        "INSERT INTO words (rowid, signature, cause, title, looked_like, subjects, notes) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (number, *case, *texts),
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
def open_store(path: str, *, make: bool = False, write: bool = False) -> Iterator[CaseStore]:
    """Open the store at ``path``: to be read, with ``write`` to be changed, with ``make`` made if there is none.

    Raises CannotExamineError if it is missing, is not a store, or is of a newer version.
    """
    with open_file(path, make=make, write=write) as file:
        yield CaseStore(file)
