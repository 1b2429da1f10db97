"""Add reports to the case store, return the history of a failure, and exchange cases as JSON.

report ──► record (redacted as strictly as a bundle, without values of tensors) ──► store
store ──► history of the next report's failure; export (``aotidoctor.cases/1``), import, merge

An imported file may come from anybody.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import TYPE_CHECKING

from aotidoctor.commands.cases.case_store import CaseQuery, CaseStore, digest, open_store
from aotidoctor.files import open_regular
from aotidoctor.fleet.results import read_results, result_facts
from aotidoctor.model.case import CASES_SCHEMA, CaseNote, CaseRecord, Sighting
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.record import JsonObject, as_object, objects, to_json
from aotidoctor.reports.json.json_report import dump_json
from aotidoctor.reports.redact.private_words import Identity
from aotidoctor.reports.redact.redactor import Redactor
from aotidoctor.reports.text import one_line
from aotidoctor.version import __version__

if TYPE_CHECKING:
    from aotidoctor.model.fleet import Fact, FleetResult
    from aotidoctor.model.report import Report


_LONGEST_TEXT = 400
_CHUNK = 500


def is_case(report: Report) -> bool:
    """Whether there is a failure to store: not for healthy reports, plans, and what could not be examined."""
    examined = report.cannot_examine is None and report.internal_error is None
    return examined and report.verdict != "healthy" and report.signature is not None and not report.plan


def remember(path: str, report: Report, environ: Mapping[str, str]) -> Report:
    """Add ``report`` to the store at ``path``; return it with the history of its failure.

    Raises CannotExamineError if the store cannot be used.
    """
    if not is_case(report):
        return report
    record = case_of_report(report, environ)
    with open_store(path, make=True) as store:
        known = store.history(record.signature, record.family)
        store.add([record])
    return replace(report, history=known)


def case_of_report(report: Report, environ: Mapping[str, str]) -> CaseRecord:
    """The redacted record of ``report``."""
    first = report.diagnoses[0] if report.diagnoses else None
    artifact = report.case.artifact
    signature = report.signature or ""
    key = digest(signature, report.started, report.command, artifact.sha256 or artifact.path, f"{report.seconds:.6f}")
    package = artifact.path.rpartition("/")[2] if artifact.path else (report.log.name if report.log is not None else "")
    record = CaseRecord(
        signature=signature,
        family=report.fingerprint.family if report.fingerprint is not None else "",
        cause=first.cause if first is not None else "unknown",
        stage=report.stage or "",
        title=_short(first.title if first is not None else ""),
        looked_like=_short(first.looked_like if first is not None else ""),
        sightings=(
            Sighting(
                key=key,
                at=report.started,
                command=report.command,
                subject=_short((first.subject or "") if first is not None else ""),
                package=_short(package),
                sha256=artifact.sha256 or "",
                # A log may come from another machine.
                host_class=""
                if report.log is not None
                else report.case.host.profile or host_class(result_facts(report.case)),
                status=first.status.value if first is not None else "",
                tool=report.version,
            ),
        ),
    )
    return strict_redactor(environ).value(record)


def case_of_result(result: FleetResult) -> CaseRecord | None:
    """The record of a line of a fleet's results, which is redacted already; None if it is no case."""
    if result.signature is None or result.is_healthy:
        return None
    return CaseRecord(
        signature=result.signature,
        family=result.family or "",
        cause=result.cause or "unknown",
        stage=result.stage or "",
        title=_short(result.title or ""),
        sightings=(
            Sighting(
                key=digest(result.signature, result.started, result.command, result.item, f"{result.seconds:.6f}"),
                at=result.started,
                command=result.command,
                subject=_short(result.subject or ""),
                package=_short(result.name.rpartition("/")[2]),
                sha256=result.sha256 or "",
                host_class=result.host or host_class(result.facts),
                status=result.cause_status or "",
                tool=result.tool,
            ),
        ),
    )


def remember_results(path: str, folder: str) -> int:
    """Add the failures in a folder of results to the store at ``path``; return how many were new.

    Raises CannotExamineError if the store or the folder cannot be used.
    """
    seen = 0
    with open_store(path, make=True) as store:
        records = (record for result in read_results(folder) if (record := case_of_result(result)) is not None)
        while chunk := list(islice(records, _CHUNK)):
            seen += store.add(chunk)[0]
    return seen


def host_class(known: Mapping[str, Fact]) -> str:
    """Describe a machine without its name, from the facts of a case: processor, instructions, torch and GPU."""
    words = " ".join(str(known[name]) for name in ("host_machine", "host_isa") if name in known)
    torch = f"torch {known['host_torch']}" if "host_torch" in known else ""
    return _short(", ".join(part for part in (words, torch, str(known.get("host_gpu", ""))) if part))


def strict_redactor(environ: Mapping[str, str]) -> Redactor:
    """A redactor for texts that may leave the machine."""
    return Redactor(Identity.of(environ, platform.node()), strict=True)


def _short(text: str) -> str:
    return one_line(text, _LONGEST_TEXT)


# Export, import and merge.
_LARGEST, _LONGEST_FIELD, _LONGEST_NOTE = 256 << 20, 400, 10_000
# Of a document. `cases merge` takes a whole store, however many there are.
MOST_EXPORTED = 100_000
_KEY = re.compile(r"[0-9a-f]{32}")
_SIGNATURE = re.compile(r"aotidoctor\d{1,4}f?:[0-9a-f]{16}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", re.ASCII)


def export_text(store: CaseStore, query: CaseQuery) -> str:
    """The cases of ``query`` with their sightings and notes, as one document.

    Raises CannotExamineError for more than ``MOST_EXPORTED``, before they are read.
    """
    found = store.find(replace(query, most=MOST_EXPORTED + 1))
    if len(found) > MOST_EXPORTED:
        raise CannotExamineError(
            f"observed more than {MOST_EXPORTED:,} cases, expected fewer in one document: narrow them with --cause or "
            "--signature, or give the store itself to `aotidoctor cases merge`"
        )
    return document([store.whole(record) for record in found])


def document(records: Sequence[CaseRecord]) -> str:
    """Write ``records`` as one JSON document."""
    tool = {"name": "aotidoctor", "version": __version__}
    return dump_json({"schema": CASES_SCHEMA, "tool": tool, "cases": records})


def import_file(store: CaseStore, path: str, redactor: Redactor) -> tuple[int, int]:
    """Add the cases of a document; return how many sightings and notes were new. Raises CannotExamineError."""
    try:
        with open_regular(path) as stream:
            data = stream.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise CannotExamineError(f"{path}: more than {_LARGEST:,} bytes; `cases merge` takes a whole store")
        found = json.loads(data)
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
        yield _cleaned(case, f"{path}: cases[{at}]")


def _cleaned(case: JsonObject, where: str) -> CaseRecord:
    """The record of a case that somebody else wrote. Raises CannotExamineError."""
    signature, family = _text(case, "signature"), _text(case, "family")
    if not _SIGNATURE.fullmatch(signature) or (family and not _SIGNATURE.fullmatch(family)):
        raise CannotExamineError(f"{where}.signature: observed {signature[:60]!r}, expected a signature")
    sightings = []
    for one in objects(case.get("sightings")):
        given = {item.name: _text(one, item.name) for item in fields(Sighting)}
        if not _KEY.fullmatch(given["key"]):
            given["key"] = digest(signature, *given.values())
        sightings.append(Sighting(**{**given, "at": _time(given["at"], where)}))
    return CaseRecord(
        signature=signature,
        family=family,
        cause=_text(case, "cause") or "unknown",
        stage=_text(case, "stage"),
        title=_text(case, "title"),
        looked_like=_text(case, "looked_like"),
        sightings=tuple(sightings),
        notes=tuple(
            CaseNote(
                text=text[:_LONGEST_NOTE] if isinstance(text := one.get("text"), str) else "",
                at=_time(_text(one, "at"), where),
                solved=one.get("solved") is True,
            )
            for one in objects(case.get("notes"))
        ),
    )


def _time(text: str, where: str) -> str:
    if not _TIME.fullmatch(text):
        raise CannotExamineError(f"{where}: at: observed {text[:40]!r}, expected a time such as 2026-09-03T10:00:00Z")
    return text


def _text(item: JsonObject, name: str) -> str:
    value = item.get(name)
    return one_line(value, _LONGEST_FIELD) if isinstance(value, str) else ""


def merge(store: CaseStore, other: str) -> tuple[int, int]:
    """Add the cases of another store; return how many sightings and notes were new. Raises CannotExamineError."""
    seen = noted = 0
    with open_store(other) as source:
        for page in source.pages():
            more = store.add([_cleaned(as_object(to_json(each)), f"{other}: case {each.number}") for each in page])
            seen, noted = seen + more[0], noted + more[1]
    return seen, noted
