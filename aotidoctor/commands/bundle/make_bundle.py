"""Examine, collect, redact, test for leaks, pack, and write a bundle with its map (``aotidoctor bundle``).

    collect ─► redact ─► leak test ─► zip ─► leak test of the finished file

Bundle and map are written completely or not at all, and never over something else.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from aotidoctor.commands import diagnose_package
from aotidoctor.commands.bundle.bundle_members import (
    BUNDLE_SCHEMA,
    MANIFEST,
    REPORT_MEMBER,
    Absent,
    BundleContents,
    Leak,
    Material,
    Needle,
    Piece,
    Sealed,
    distinct_names,
    map_text,
    needles,
    read_map,
    safe_name,
    scan_for_leaks,
    zip_members,
)
from aotidoctor.commands.bundle.collect import (
    NO_RUN,
    ChildOutputs,
    as_document,
    collect,
    document_without_values,
    report_without_values,
)
from aotidoctor.files import write_file
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.record import as_object, record
from aotidoctor.model.report import Event, OnEvent, Report
from aotidoctor.readers.package.blob import opened_blob
from aotidoctor.readers.package.zip_archive import read_zip_directory
from aotidoctor.reports.json.json_report import dump_json, read_saved_report, report_document
from aotidoctor.reports.markdown import render_markdown
from aotidoctor.reports.redact.private_words import PLACEHOLDER, Identity
from aotidoctor.reports.redact.redactor import Placeholders, Redactor
from aotidoctor.version import __version__

# From a report to a finished bundle in memory.
_PLACEHOLDER = re.compile(PLACEHOLDER)
# Members that a bundle cannot do without: a private word left in them refuses the whole.
_NEEDED = (REPORT_MEMBER, MANIFEST)
_ADDRESSES = ("email", "ip", "mac", "account")
_NOT_COVERED = (
    "words that were not given and do not look like secrets; numbers written into the compiled code;"
    " bounds of integer inputs; members marked raw"
)


@record
class Bundle:
    """A finished bundle. ``table``, for the map file, has the originals of the placeholders."""

    data: bytes
    members: tuple[Sealed, ...]
    absent: tuple[Absent, ...]
    manifest: Mapping[str, object]
    table: Mapping[str, str]


def make_bundle(
    material: Material, wanted: BundleContents, identity: Identity, placeholders: Placeholders | None = None
) -> Bundle:
    """Make the bundle.

    Raises:
        CannotExamineError: a private word cannot be removed.
    """
    saved = None if material.saved is None else document_without_values(material.saved)
    quiet = replace(material, report=report_without_values(material.report), saved=saved)
    pieces, absent = collect(quiet, wanted)
    if not wanted.redact:
        documents, more = _documents(quiet)
        return _pack(_seal_all([*documents, *pieces]), [*absent, *more], {}, None, quiet.report)
    redactor = Redactor(identity, strict=True, placeholders=placeholders)
    hidden, found, missing = redactor.value((quiet, tuple(pieces), tuple(absent)))
    documents, more = _documents(hidden)
    # Names that are hidden wherever they stand, and addresses. Not what is hidden at one place only: the None of
    # ``password: None``, the folder ``/home/shared``.
    given = redactor.placeholders
    table = given.table()
    words = [(given.placeholder_of(name.kind, name.text) or f"<{name.kind}>", name) for name in redactor.names()]
    words += [pair for pair in zip(table, given.names(), strict=True) if pair[1].kind in _ADDRESSES]
    looked_for = needles(words)
    members, dropped = _drop_private([*documents, *found], looked_for, wanted, redactor)
    redaction = {
        "placeholders": sorted(table),
        "leak_test": {"forms": len(looked_for), "members": len(members) + 1, "found": 0},
        # So short or ordinary that they stay except in addresses and paths: --redact-word hides them.
        "only_in_addresses": sorted({label for label, name in words if name.only_in_addresses(strict=True)}),
        "not_covered": _NOT_COVERED,
    }
    bundle = _pack(members, [*missing, *more, *dropped], table, redaction, hidden.report)
    # The finished file: its own names, comments and extra fields, and what is in it once more.
    leaks = _not_allowed(scan_for_leaks(bundle.data, "the finished file", looked_for), wanted, redactor)
    if leaks:
        raise CannotExamineError(_refusal(leaks))
    return bundle


def _documents(material: Material) -> tuple[list[Piece], list[Absent]]:
    """The report as JSON and Markdown, or a saved one as it was saved."""
    if material.saved is not None:
        reason = "made from a saved report; aotidoctor analyze shows it"
        return [Piece(name=REPORT_MEMBER, what="the report", document=material.saved)], [
            Absent(name="report.md", reason=reason)
        ]
    made = [Piece(name=REPORT_MEMBER, what="the report", document=as_document(report_document(material.report)))]
    try:
        text = render_markdown(material.report)
    except Exception as error:  # noqa: BLE001 - the report is there as JSON
        return made, [Absent(name="report.md", reason=type(error).__name__)]
    return [*made, Piece(name="report.md", what="the report for people", text=text)], []


def _seal_all(pieces: Sequence[Piece]) -> list[Sealed]:
    sealed = []
    for piece, name in zip(pieces, distinct_names([safe_name(piece.name) for piece in pieces]), strict=True):
        if piece.data is not None:
            sealed.append(Sealed(name=name, what=piece.what, data=piece.data, raw=True))
            continue
        text = dump_json(piece.document) if piece.document is not None else piece.text or piece.printed or ""
        count = len(_PLACEHOLDER.findall(text))
        sealed.append(Sealed(name=name, what=piece.what, data=text.encode("utf-8", "replace"), redactions=count))
    return sealed


def _drop_private(
    pieces: Sequence[Piece], looked_for: Sequence[Needle], wanted: BundleContents, redactor: Redactor
) -> tuple[list[Sealed], list[Absent]]:
    """Drop members with private words; refuse the bundle if it needs them, or if the user included them."""
    clean: list[Sealed] = []
    dropped: list[Absent] = []
    refused: list[Leak] = []
    for member in _seal_all(pieces):
        leaks = _not_allowed(scan_for_leaks(member.data, member.name, looked_for), wanted, redactor)
        if not leaks:
            clean.append(member)
        elif member.raw or member.name in _NEEDED:
            refused += leaks
        else:
            dropped.append(Absent(name=member.name, reason=f"leak test: {leaks[0]}"))
    if refused:
        raise CannotExamineError(_refusal(refused))
    return clean, dropped


def _not_allowed(leaks: Sequence[Leak], wanted: BundleContents, redactor: Redactor) -> list[Leak]:
    texts = redactor.placeholders.table()
    allowed = {word.casefold() for word in wanted.allowed}
    return [
        leak
        for leak in leaks
        if leak.placeholder not in allowed and texts.get(leak.placeholder, "").casefold() not in allowed
    ]


def _refusal(leaks: Sequence[Leak]) -> str:
    """The message with each word once, at the innermost place where it was found."""
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


def _pack(
    members: Sequence[Sealed],
    absent: Sequence[Absent],
    table: Mapping[str, str],
    redaction: Mapping[str, object] | None,
    report: Report,
) -> Bundle:
    ordered = sorted(members, key=lambda one: one.name)
    manifest = {
        "schema": BUNDLE_SCHEMA,
        "tool": {"name": "aotidoctor", "version": __version__},
        "command": report.command,
        "verdict": report.verdict,
        "package": {"path": report.case.artifact.path, "size": report.case.artifact.size},
        "redaction": redaction,
        "members": [
            {
                "name": member.name,
                "what": member.what,
                "size": len(member.data),
                "sha256": hashlib.sha256(member.data).hexdigest(),
                "redactions": member.redactions,
                "raw": member.raw,
            }
            for member in ordered
        ],
        "left_out": [{"name": item.name, "reason": item.reason} for item in absent],
    }
    every = (Sealed(name=MANIFEST, what="this list", data=dump_json(manifest).encode()), *ordered)
    return Bundle(data=zip_members(every), members=every, absent=tuple(absent), manifest=manifest, table=table)


# The content of a bundle as text.
def listing(bundle: Bundle, *, place: str, map_place: str | None, dry: bool, brief: bool = False) -> str:
    """List members, and what was left out, one per line; ``brief``: only the size and the redaction."""
    what = "would be written" if dry else "written"
    lines = [f"{place}: {what}, {size_text(len(bundle.data))}, {len(bundle.members)} members"]
    if brief:
        lines += [f"without {item.name}: {item.reason}" for item in bundle.absent if item.name == NO_RUN]
        return "\n".join([*lines, _privacy(bundle, map_place, dry=dry)]) + "\n"
    lines.append("")
    for member in bundle.members:
        hidden = f"{member.redactions} hidden" if member.redactions else "NOT REDACTED" if member.raw else ""
        lines.append(f"  {size_text(len(member.data)):>8}  {hidden:<12}  {member.name}")
    if bundle.absent:
        lines += ["", "left out:"]
        lines += [f"  {item.name}: {item.reason}" for item in bundle.absent]
    lines += ["", _privacy(bundle, map_place, dry=dry)]
    return "\n".join(lines) + "\n"


def size_text(size: int) -> str:
    """Format a size in bytes: ``512 B``, ``1.5 KB``, ``2.0 MB``."""
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.1f} KB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def _privacy(bundle: Bundle, map_place: str | None, *, dry: bool) -> str:
    if bundle.manifest.get("redaction") is None:
        return "not redacted, and not tested for leaks: --no-redact"
    originals = f"; the originals are in {map_place}, which is not sent" if map_place and not dry else ""
    count = f"{len(bundle.table)} placeholder{'' if len(bundle.table) == 1 else 's'}"
    return f"{count}{originals}. Leak test: no private word found in any encoding tried."


# The material: a new examination, or a saved report.
def examine_for_bundle(
    package: str,
    inputs: str | None,
    options: Options,
    *,
    runs: bool,
    argv: tuple[str, ...],
    environ: Mapping[str, str],
    on_event: OnEvent,
) -> Material:
    """Examine as ``check`` does, or with ``runs`` as ``run`` does, with the full output of every child."""
    journal: list[str] = []

    def note(event: Event) -> None:
        fine = "" if event.ok is None else " ok" if event.ok else " failed"
        took = f" {event.seconds:.2f} s" if event.seconds else ""
        journal.append(f"{event.kind.value}: {event.name}{took}{fine} {event.verdict}".rstrip())
        on_event(event)

    if not runs:
        report = diagnose_package.diagnose(
            package, inputs, options, argv=argv, environ=environ, static_only=True, on_event=note
        )
        return Material(report=report, journal=tuple(journal))
    # Imported only where processes are started.
    from aotidoctor.runner.portable import make_runner

    outputs = ChildOutputs()
    with make_runner(environ=environ, preload=diagnose_package.early_modules(options), keep=outputs.keep) as runner:
        report = diagnose_package.diagnose(
            package, inputs, options, argv=argv, environ=environ, on_event=note, runner=runner
        )
    return Material(report=report, outputs=outputs.texts, journal=tuple(journal))


def with_saved_report(material: Material, path: str) -> Material:
    """``material`` with the saved report at ``path`` in place of its own findings.

    Raises:
        CannotExamineError: it is no report, or belongs to another package.
    """
    saved = read_saved_report(path)
    theirs, ours = as_object(saved.get("artifact")), material.report.case.artifact
    known = theirs.get("sha256") is not None and ours.sha256 is not None
    same = theirs.get("sha256") == ours.sha256 if known else theirs.get("size") == ours.size
    if ours.path and not same:
        raise CannotExamineError(
            f"{path}: observed the report of a different package ({theirs.get('size')} bytes), expected that of"
            f" {ours.path} ({ours.size} bytes)"
        )
    return replace(material, saved=saved)


# Bundle and map on disk.
@record
class BundleTarget:
    """The paths of the bundle and of its map (None: beside the bundle)."""

    path: Path
    map_path: Path | None = None
    dry: bool = False

    @property
    def map_file(self) -> Path:
        """The path of the map."""
        return self.map_path or self.path.with_name(self.path.name + ".map.json")


def check_target(target: BundleTarget, protected: Sequence[str | None]) -> None:
    """Raise UsageError for a target that would destroy something."""
    taken = {os.path.realpath(path) for path in protected if path}
    for path in (target.path, target.map_file):
        if os.path.realpath(path) in taken:
            raise UsageError(f"{path} is an input of this command and is not overwritten")
    if os.path.realpath(target.path) == os.path.realpath(target.map_file):
        raise UsageError("the map and the bundle are one file; the map must stay out of the bundle")
    if not os.path.lexists(target.path):
        return
    directory = None
    with suppress(OSError), opened_blob(target.path) as (blob, _):
        directory = read_zip_directory(blob)
    if directory is None or not any(entry.name == MANIFEST for entry in directory.entries):
        raise UsageError(f"{target.path} exists and is not a bundle; it was not overwritten")


def deliver(
    material: Material, wanted: BundleContents, target: BundleTarget, environ: Mapping[str, str], host_name: str
) -> Bundle:
    """Make the bundle and write it, the map first.

    Raises:
        CannotExamineError: it leaks, or it cannot be written; then nothing is left behind.
        UsageError: the map cannot be used.
    """
    identity = Identity.of(environ, host_name, wanted.words)
    placeholders = read_map(target.map_file) if wanted.redact else None
    bundle = make_bundle(material, wanted, identity, placeholders)
    if len(bundle.data) > wanted.largest:
        raise CannotExamineError(f"the bundle has {len(bundle.data)} bytes, more than --max-size {wanted.largest}")
    if target.dry:
        return bundle
    writing, new = target.map_file, not os.path.lexists(target.map_file)
    try:
        if wanted.redact:
            write_file(target.map_file, map_text(bundle.table), mode=0o600)
        writing = target.path
        write_file(target.path, bundle.data)
    except OSError as error:
        if wanted.redact and new:
            # A map of a bundle that was not written would only reveal private words.
            target.map_file.unlink(missing_ok=True)
        raise CannotExamineError(f"could not write {writing}: {error.strerror or error}") from error
    return bundle


def deliver_report(report: Report, path: Path, environ: Mapping[str, str], *, redact: bool) -> str:
    """Write a report as a bundle (``--report bundle:FILE``) and return one line about it."""
    target = BundleTarget(path=path)
    check_target(target, (report.case.artifact.path, report.case.inputs_path))
    # The tails of its runs as their outputs.
    outputs = {
        f"{run.id}.{name}": text
        for run in report.runs
        for name, text in (("stdout", run.stdout_tail), ("stderr", run.stderr_tail))
        if text
    }
    material = Material(report=report, outputs=outputs)
    bundle = deliver(material, BundleContents(redact=redact), target, environ, platform.node())
    redaction = f"; the placeholders' map is {target.map_file}" if redact else ", not redacted"
    return f"wrote {path}: {len(bundle.members)} members, {len(bundle.data)} bytes{redaction}"
