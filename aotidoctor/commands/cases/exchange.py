"""Cases as JSON (``aotidoctor.cases/1``), out of a store and into another; what is read may come from anybody."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from aotidoctor.commands.cases.store import Query, Store, digest, open_store
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.history import CASES_SCHEMA, CaseRecord, Note, Sighting
from aotidoctor.model.json_types import JsonObject, JsonValue, objects
from aotidoctor.reports.json.render import dumps
from aotidoctor.reports.redact import Redactor
from aotidoctor.reports.text import one_line
from aotidoctor.version import __version__

_LARGEST, _LONGEST, _LONGEST_NOTE = 256 << 20, 400, 10_000
_MOST = 1_000_000_000
_KEY = re.compile(r"[0-9a-f]{32}")
_SIGNATURE = re.compile(r"aotidoctor\d{1,4}f?:[0-9a-f]{16}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", re.ASCII)


def export_text(store: Store, query: Query) -> str:
    """The cases of ``query`` with everything in them, as one document."""
    records = [store.whole(record) for record in store.find(query)]
    return document(records)


def document(records: Sequence[CaseRecord]) -> str:
    """``records`` as one document."""
    tool = {"name": "aotidoctor", "version": __version__}
    return dumps({"schema": CASES_SCHEMA, "tool": tool, "cases": records})


def everything() -> Query:
    """All cases."""
    return Query(most=_MOST)


def import_file(store: Store, path: str, redactor: Redactor) -> tuple[int, int]:
    """Add the cases of a document; how many sightings and notes were new. Raises CannotExamineError."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(_LARGEST + 1)
        found = json.loads(data) if len(data) <= _LARGEST else None
    except OSError as error:
        raise CannotExamineError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CannotExamineError(
            f"{path}: observed invalid JSON ({error}), expected what `cases export` wrote"
        ) from error
    if not isinstance(found, dict) or found.get("schema") != CASES_SCHEMA:
        raise CannotExamineError(f"{path}: observed different JSON, expected {CASES_SCHEMA}")
    return store.add([redactor.value(record) for record in _read(found, path)])


def _read(found: JsonObject, path: str) -> Iterator[CaseRecord]:
    for at, case in enumerate(objects(found.get("cases"))):
        signature = _text(case, "signature")
        family = _text(case, "family")
        if not _SIGNATURE.fullmatch(signature) or (family and not _SIGNATURE.fullmatch(family)):
            raise CannotExamineError(
                f"{path}: cases[{at}].signature: observed {signature[:60]!r}, expected a signature"
            )
        yield CaseRecord(
            signature=signature,
            family=family,
            cause=_text(case, "cause") or "unknown",
            stage=_text(case, "stage"),
            title=_text(case, "title"),
            looked_like=_text(case, "looked_like"),
            sightings=tuple(
                _sighting(one, signature, f"{path}: cases[{at}]") for one in objects(case.get("sightings"))
            ),
            notes=tuple(_note(one, f"{path}: cases[{at}]") for one in objects(case.get("notes"))),
        )


def _sighting(one: JsonObject, signature: str, where: str) -> Sighting:
    given = {item.name: _text(one, item.name) for item in fields(Sighting)}
    if not _KEY.fullmatch(given["key"]):
        given["key"] = digest(signature, *given.values())
    return Sighting(**{**given, "at": _time(given["at"], where)})


def _note(one: JsonObject, where: str) -> Note:
    text: JsonValue = one.get("text")
    told = text[:_LONGEST_NOTE] if isinstance(text, str) else ""
    return Note(text=told, at=_time(_text(one, "at"), where), solved=one.get("solved") is True)


def _time(text: str, where: str) -> str:
    if not _TIME.fullmatch(text):
        raise CannotExamineError(f"{where}: at: observed {text[:40]!r}, expected a time such as 2026-09-03T10:00:00Z")
    return text


def _text(item: JsonObject, name: str) -> str:
    value = item.get(name)
    return one_line(value, _LONGEST) if isinstance(value, str) else ""


def merge(store: Store, other: str) -> tuple[int, int]:
    """Add the cases of another store; how many sightings and notes were new. Raises CannotExamineError."""
    seen = noted = 0
    with open_store(other) as source:
        for record in source.find(everything()):
            more = store.add([source.whole(record)])
            seen, noted = seen + more[0], noted + more[1]
    return seen, noted
