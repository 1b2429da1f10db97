"""From a report to a finished bundle in memory: collected, redacted, tested, packed, and tested again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.commands.bundle import MANIFEST, REPORT, SCHEMA
from aotidoctor.commands.bundle.collect import as_document, collect
from aotidoctor.commands.bundle.discreet import discreet, discreet_document
from aotidoctor.commands.bundle.leaks import Leak, Needle, needles, scan
from aotidoctor.commands.bundle.member_names import distinct, safe_name
from aotidoctor.commands.bundle.pieces import Absent, Material, Piece, Sealed, Wanted
from aotidoctor.commands.bundle.zip_file import zipped
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports.json.render import document as report_document
from aotidoctor.reports.json.render import dumps
from aotidoctor.reports.markdown.render import render as render_markdown
from aotidoctor.reports.redact import Identity, Redactor
from aotidoctor.reports.redact.names import Name
from aotidoctor.reports.redact.patterns import PLACEHOLDER
from aotidoctor.reports.redact.placeholders import Placeholders
from aotidoctor.version import __version__

_PLACEHOLDER = re.compile(PLACEHOLDER)
# Without these the file is of no use: a word that is left in them refuses the whole.
_NEEDED = (REPORT, MANIFEST)
_ADDRESSES = ("email", "ip", "mac", "account")
_NOT_COVERED = (
    "words that were not given and do not look like secrets; numbers written into the compiled code;"
    " bounds of integer inputs; members marked raw"
)


@record
class Bundle:
    """A finished bundle. ``table`` is for the map file: what the placeholders stand for."""

    data: bytes
    members: tuple[Sealed, ...]
    absent: tuple[Absent, ...]
    manifest: Mapping[str, object]
    table: Mapping[str, str]


def make_bundle(
    material: Material, wanted: Wanted, identity: Identity, placeholders: Placeholders | None = None
) -> Bundle:
    """Make the bundle.

    Raises:
        CannotExamineError: a private word is left where it cannot be removed.
    """
    saved = None if material.saved is None else discreet_document(material.saved)
    quiet = replace(material, report=discreet(material.report), saved=saved)
    pieces, absent = collect(quiet, wanted)
    if not wanted.redact:
        documents, more = _documents(quiet)
        return _packed(_sealed([*documents, *pieces]), [*absent, *more], {}, None, quiet.report)
    redactor = Redactor(identity, strict=True, placeholders=placeholders)
    hidden, found, missing = redactor.value((quiet, tuple(pieces), tuple(absent)))
    documents, more = _documents(hidden)
    words = _words(redactor)
    looked_for = needles(words)
    kept, dropped = _tested([*documents, *found], looked_for, wanted, redactor)
    table = redactor.placeholders.table()
    redaction = {
        "placeholders": sorted(table),
        "leak_test": {"forms": len(looked_for), "members": len(kept) + 1, "found": 0},
        # So short or ordinary that they stay where nothing shows that a name is meant: --redact-word hides them.
        "only_in_addresses": sorted({label for label, name in words if name.only_in_addresses(strict=True)}),
        "not_covered": _NOT_COVERED,
    }
    bundle = _packed(kept, [*missing, *more, *dropped], table, redaction, hidden.report)
    _last_test(bundle, looked_for, wanted, redactor)
    return bundle


def _documents(material: Material) -> tuple[list[Piece], list[Absent]]:
    """The report in both forms; a saved one as it was saved."""
    if material.saved is not None:
        reason = "made from a saved report; aotidoctor analyze shows it"
        return [Piece(name=REPORT, what="the report", document=material.saved)], [
            Absent(name="report.md", reason=reason)
        ]
    made = [Piece(name=REPORT, what="the report", document=as_document(report_document(material.report)))]
    try:
        text = render_markdown(material.report)
    except Exception as error:  # noqa: BLE001 - the other form of the same report is there
        return made, [Absent(name="report.md", reason=type(error).__name__)]
    return [*made, Piece(name="report.md", what="the report for people", text=text)], []


def _words(redactor: Redactor) -> list[tuple[str, Name]]:
    """The names that are hidden wherever they stand, and the addresses.

    Not what is hidden at one place only: the None of ``password: None``, the folder ``/home/shared``.
    """
    given = redactor.placeholders
    known = [(given.known(name.kind, name.text) or f"<{name.kind}>", name) for name in redactor.names()]
    table = zip(given.table(), given.names(), strict=True)
    return [*known, *((placeholder, name) for placeholder, name in table if name.kind in _ADDRESSES)]


def _sealed(pieces: Sequence[Piece]) -> list[Sealed]:
    names = distinct([safe_name(piece.name) for piece in pieces])
    return [_seal(piece, name) for piece, name in zip(pieces, names, strict=True)]


def _seal(piece: Piece, name: str) -> Sealed:
    if piece.data is not None:
        return Sealed(name=name, what=piece.what, data=piece.data, raw=True)
    text = dumps(piece.document) if piece.document is not None else piece.text or piece.printed or ""
    data = text.encode("utf-8", "replace")
    return Sealed(name=name, what=piece.what, data=data, redactions=len(_PLACEHOLDER.findall(text)))


def _tested(
    pieces: Sequence[Piece], looked_for: Sequence[Needle], wanted: Wanted, redactor: Redactor
) -> tuple[list[Sealed], list[Absent]]:
    """The members that hold no private word; the others are dropped, or refused where the user asked for them."""
    kept: list[Sealed] = []
    dropped: list[Absent] = []
    refused: list[Leak] = []
    for member in _sealed(pieces):
        leaks = _not_allowed(scan(member.data, member.name, looked_for), wanted, redactor)
        if not leaks:
            kept.append(member)
        elif member.raw or member.name in _NEEDED:
            refused += leaks
        else:
            dropped.append(Absent(name=member.name, reason=f"leak test: {leaks[0]}"))
    if refused:
        raise CannotExamineError(_refusal(refused))
    return kept, dropped


def _not_allowed(leaks: Sequence[Leak], wanted: Wanted, redactor: Redactor) -> list[Leak]:
    texts = redactor.placeholders.table()
    allowed = {word.casefold() for word in wanted.allowed}
    return [
        leak
        for leak in leaks
        if leak.placeholder not in allowed and texts.get(leak.placeholder, "").casefold() not in allowed
    ]


def _refusal(leaks: Sequence[Leak]) -> str:
    """Each word once, at the innermost place it was found in."""
    inmost: dict[str, Leak] = {}
    for leak in leaks:
        known = inmost.get(leak.placeholder)
        if known is None or leak.where.count("/") > known.where.count("/"):
            inmost[leak.placeholder] = leak
    named = "; ".join(str(leak) for leak in inmost.values())
    words = " ".join(f"--allow-leaks '{placeholder}'" for placeholder in inmost)
    return (
        f"no bundle was written: the leak test found {named}. Observed: private words in what cannot be redacted;"
        f" expected: none. Leave it out, or send it knowingly with {words}"
    )


def _packed(
    members: Sequence[Sealed],
    absent: Sequence[Absent],
    table: Mapping[str, str],
    redaction: Mapping[str, object] | None,
    report: Report,
) -> Bundle:
    ordered = sorted(members, key=lambda one: one.name)
    manifest = {
        "schema": SCHEMA,
        "tool": {"name": "aotidoctor", "version": __version__},
        "command": report.command,
        "verdict": report.verdict,
        "package": {"path": report.case.artifact.path, "size": report.case.artifact.size},
        "redaction": redaction,
        "members": [_line(member) for member in ordered],
        "left_out": [{"name": item.name, "reason": item.reason} for item in absent],
    }
    every = (Sealed(name=MANIFEST, what="this list", data=dumps(manifest).encode()), *ordered)
    return Bundle(data=zipped(every), members=every, absent=tuple(absent), manifest=manifest, table=table)


def _line(member: Sealed) -> dict[str, object]:
    return {
        "name": member.name,
        "what": member.what,
        "size": len(member.data),
        "sha256": hashlib.sha256(member.data).hexdigest(),
        "redactions": member.redactions,
        "raw": member.raw,
    }


def _last_test(bundle: Bundle, looked_for: Sequence[Needle], wanted: Wanted, redactor: Redactor) -> None:
    """The finished file: its own names, comments and extra fields, and what is in it once more."""
    leaks = _not_allowed(scan(bundle.data, "the finished file", looked_for), wanted, redactor)
    if leaks:
        raise CannotExamineError(_refusal(leaks))
