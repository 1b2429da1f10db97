"""A bundle or a report from anybody, read with bounds: into memory, never to disk, never more than the limits."""

from __future__ import annotations

import hashlib
import json
import stat
from dataclasses import dataclass, field

from aotidoctor.commands.bundle import CASE, MANIFEST, REPORT
from aotidoctor.commands.bundle import SCHEMA as BUNDLE_SCHEMA
from aotidoctor.model.errors import CannotExamineError, examining
from aotidoctor.model.json_types import JsonObject, JsonValue, objects
from aotidoctor.model.report import SCHEMA
from aotidoctor.readers.package.blob import Blob, opened_blob
from aotidoctor.readers.package.integrity import read_entry
from aotidoctor.readers.package.names import duplicate_names, is_unsafe
from aotidoctor.readers.package.zip_directory import Entry, ZipDirectory, read_directory

LARGEST_MEMBER = 64 << 20
LARGEST_ALL = 256 << 20
_EXPECTED = f"expected a bundle of aotidoctor ({BUNDLE_SCHEMA}) or one of its JSON reports ({SCHEMA})"


@dataclass(slots=True, kw_only=True)
class Sent:
    """What was sent. ``members`` are those whose checksum is right; ``problems`` say what was not believed.

    ``manifest`` is empty for a bare report.
    """

    path: str
    report: JsonObject
    manifest: JsonObject = field(default_factory=dict)
    members: dict[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def is_bundle(self) -> bool:
        """Whether it was a bundle, not a bare report."""
        return bool(self.manifest)

    def document(self, name: str) -> JsonObject | None:
        """A member as a JSON object; None where it is none."""
        data = self.members.get(name)
        found = None if data is None else _json(data)
        return found if isinstance(found, dict) else None


def read_sent(path: str) -> Sent:
    """Read the file at ``path``.

    Raises:
        CannotExamineError: there is no such file, or it is neither a bundle nor a report.
    """
    with examining(path), opened_blob(path) as (blob, mode):
        if not stat.S_ISREG(mode):
            raise CannotExamineError(f"{path}: observed no file, {_EXPECTED}")
        return _read(path, blob)


def _read(path: str, blob: Blob) -> Sent:
    directory = read_directory(blob)
    if directory is not None:
        return _bundle(path, blob, directory)
    head = blob.read_at(0, 64).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head.startswith(b"{"):
        raise CannotExamineError(f"{path}: observed a file of {blob.size} bytes that is not an archive, {_EXPECTED}")
    data = blob.read_all(LARGEST_MEMBER)
    if data is None:
        raise CannotExamineError(f"{path}: observed {blob.size} bytes, expected at most {LARGEST_MEMBER}")
    return Sent(path=path, report=_report(path, _json(data)))


def _bundle(path: str, blob: Blob, directory: ZipDirectory) -> Sent:
    names = [entry.name for entry in directory.entries]
    if MANIFEST not in names:
        raise CannotExamineError(f"{path}: observed an archive of {len(names)} members without {MANIFEST}, {_EXPECTED}")
    doubled = duplicate_names(names)
    if doubled:
        raise CannotExamineError(f"{path}: observed two members called {doubled[0][:80]!r}, expected one of each name")
    entries = {entry.name: entry for entry in directory.entries}
    manifest = _json(read_entry(blob, entries[MANIFEST], LARGEST_MEMBER) or b"")
    if not isinstance(manifest, dict) or manifest.get("schema") != BUNDLE_SCHEMA:
        said = manifest.get("schema") if isinstance(manifest, dict) else "no JSON"
        raise CannotExamineError(f"{path}: observed {str(said)[:80]} in {MANIFEST}, expected {BUNDLE_SCHEMA}")
    sent = Sent(path=path, report={}, manifest=manifest)
    if directory.problem is not None:
        sent.problems.append(directory.problem)
    _members(sent, blob, entries)
    if REPORT not in sent.members:
        raise CannotExamineError(f"{path}: observed no {REPORT} that agrees with its checksum, expected one")
    sent.report = _report(f"{path}/{REPORT}", _json(sent.members[REPORT]))
    return sent


def _members(sent: Sent, blob: Blob, entries: dict[str, Entry]) -> None:
    """Read what the manifest lists, as far as the limits go; the rest is named."""
    listed = {str(item.get("name")): item for item in objects(sent.manifest.get("members"))}
    sent.problems += [f"{name[:80]} is not in the manifest" for name in entries if name not in {*listed, MANIFEST}][:20]
    left = LARGEST_ALL
    # What a diagnosis needs most first: a limit must not cost it.
    for name in sorted(listed, key=lambda one: (one not in (REPORT, CASE), one)):
        entry = entries.get(name)
        problem, data = _member(blob, entry, listed[name], min(left, LARGEST_MEMBER))
        if data is None:
            sent.problems.append(f"{name[:80]}: {problem}")
        else:
            left -= len(data)
            sent.members[name] = data


def _member(blob: Blob, entry: Entry | None, line: JsonObject, limit: int) -> tuple[str, bytes | None]:
    if entry is None:
        return "listed but missing", None
    if is_unsafe(entry.name) or stat.S_ISLNK(entry.mode) or entry.mismatch:
        return "an unsafe name, a link, or headers that cannot be combined", None
    if entry.size > limit:
        return f"{entry.size} bytes, more than is read", None
    data = read_entry(blob, entry, limit)
    if data is None or len(data) != entry.size:
        return "it cannot be unpacked", None
    if hashlib.sha256(data).hexdigest() != line.get("sha256"):
        return "its checksum is not the one in the manifest", None
    return "", data


def _json(data: bytes) -> JsonValue:
    try:
        value: JsonValue = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value


def _report(path: str, document: JsonValue) -> JsonObject:
    if not isinstance(document, dict):
        raise CannotExamineError(f"{path}: observed no JSON object, {_EXPECTED}")
    if document.get("schema") != SCHEMA:
        raise CannotExamineError(f"{path}: observed the schema {str(document.get('schema'))[:80]!r}, {_EXPECTED}")
    return document
