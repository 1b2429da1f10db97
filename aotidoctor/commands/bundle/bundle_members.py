"""Members of a bundle: pieces, safe names, a reproducible zip archive, the placeholder map, and the leak test.

The leak test looks for every known private word, in every encoding it may travel in, in finished bytes. It shares
nothing with the expressions of the redactor but the list of words, so that it finds a hole in those. Archives
inside are opened (zip, gzip), to a bounded depth and size.

The map from placeholders to the originals stays with the owner. Its file is made with mode 0600, never through a link,
and never replaces a file of another kind or owner.
"""

from __future__ import annotations

import io
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from aotidoctor.files import O_BINARY, O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK, is_mine
from aotidoctor.model.errors import UsageError
from aotidoctor.model.record import JsonObject, record
from aotidoctor.model.report import Report
from aotidoctor.readers.package.blob import bytes_blob
from aotidoctor.readers.package.zip_archive import read_entry, read_zip_directory
from aotidoctor.reports.redact.ordinary_words import SUBSTRING, is_ordinary
from aotidoctor.reports.redact.private_words import Name, base64_cores, escaped_forms, obscured_forms
from aotidoctor.reports.redact.redactor import Placeholders

BUNDLE_SCHEMA = "aotidoctor.bundle/1"
MANIFEST = "bundle.json"
REPORT_MEMBER = "report.json"
CASE_MEMBER = "case.json"
CASE_SCHEMA = "aotidoctor.case/1"
GIVEN_LOGS = "logs/given/"


@record
class Piece:
    """A member before redaction. Exactly one of the last four fields is set.

    ``what`` describes it. ``document`` is JSON: its texts are redacted one by one. ``printed`` is the output of a
    program. ``data`` is sent as it is: it cannot be redacted.
    """

    name: str
    what: str
    document: JsonObject | None = None
    text: str | None = None
    printed: str | None = None
    data: bytes | None = None


@record
class Absent:
    """Something that is not in the bundle, and the reason."""

    name: str
    reason: str


@record
class Sealed:
    """One finished member. ``redactions`` counts the placeholders in it; ``raw``: it was not redacted."""

    name: str
    what: str
    data: bytes
    redactions: int = 0
    raw: bool = False


@record
class BundleContents:
    """The user's choice of contents.

    ``include`` holds ``weights``, ``inputs`` and ``package``. ``words`` are private words; ``allowed`` are those (or
    their placeholders) that may stay in members which cannot be redacted. ``largest`` is the limit in bytes.
    """

    logs: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    redact: bool = True
    largest: int = 256 << 20


@record
class Material:
    """The sources of a bundle.

    ``saved`` is a saved report that stands in for ``report``'s own findings, None where there is none. ``outputs`` maps
    ``R1.plain_run.stdout`` to the output of a child; ``journal`` has lines about the work of aotidoctor.
    """

    report: Report
    saved: JsonObject | None = None
    outputs: dict[str, str] | None = None
    journal: tuple[str, ...] = ()


@record
class BundleJob:
    """The input of the collectors."""

    material: Material
    wanted: BundleContents


# Names that every system can unpack: no way out of the folder, no special characters.
_ODD = re.compile(r'[\x00-\x1f\x7f:*?"|\\]')
_LONGEST = 180
_PLAIN = str.maketrans({"<": "(", ">": ")"})


def safe_name(name: str) -> str:
    """``name`` without anything that a file system could misread; placeholders stand in parentheses."""
    parts = [_ODD.sub("_", part.translate(_PLAIN)).strip() for part in name.split("/")]
    safe = [part[-_LONGEST:] for part in parts if part.strip(".")]
    return "/".join(safe).encode("utf-8", "replace").decode() or "unnamed"


def distinct_names(names: list[str]) -> list[str]:
    """The names, with ``-2`` before the suffix of the second of two that are equal but for case."""
    taken: set[str] = set()
    found = []
    for name in names:
        chosen, count = name, 1
        while chosen.casefold() in taken:
            count += 1
            stem, dot, suffix = name.rpartition(".")
            chosen = f"{stem}-{count}.{suffix}" if dot and "/" not in suffix else f"{name}-{count}"
        taken.add(chosen.casefold())
        found.append(chosen)
    return found


# Same members, same bytes: fixed times and modes, sorted, no extra fields.
_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
_UNIX = 3


def zip_members(members: Sequence[Sealed]) -> bytes:
    """The archive; the manifest comes first, the others by name."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for member in sorted(members, key=lambda one: (one.name != MANIFEST, one.name)):
            entry = zipfile.ZipInfo(member.name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _MODE
            entry.create_system = _UNIX
            archive.writestr(entry, member.data)
    return stream.getvalue()


# The placeholder map.
MAP_SCHEMA = "aotidoctor.map/1"
_LARGEST_MAP = 8 << 20


def read_map(path: Path) -> Placeholders:
    """The placeholders of an earlier bundle; none where there is no file yet. Raises UsageError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_BINARY)
    except FileNotFoundError:
        return Placeholders()
    except OSError as error:
        raise UsageError(f"{path} cannot be used as a map: {error.strerror or error}") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"{path} cannot be used as a map: it is not a file")
        if not is_mine(found):
            raise UsageError(f"{path} cannot be used as a map: it belongs to a different user")
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            data = stream.read(_LARGEST_MAP + 1)
    finally:
        os.close(descriptor)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    table = (
        document.get("placeholders") if isinstance(document, dict) and document.get("schema") == MAP_SCHEMA else None
    )
    if not isinstance(table, dict):
        raise UsageError(f"{path} is not an aotidoctor map ({MAP_SCHEMA}); it is not overwritten")
    return Placeholders({str(key): text for key, text in table.items() if isinstance(text, str)})


def map_text(table: Mapping[str, str]) -> str:
    """The content of a map."""
    document = {"schema": MAP_SCHEMA, "placeholders": dict(table)}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


# The leak test.
_SHORTEST = 3
_DEPTH = 3
_UNPACKED = 512 << 20
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "latin-1")
_ZIP, _GZIP = b"PK\3\4", b"\x1f\x8b"
_PATH_GOES_ON = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


@record
class Needle:
    """A form of a private word. ``folded``: in any case of letters. ``edge``: what may not stand beside it."""

    placeholder: str
    form: str
    data: bytes
    folded: bool = True
    edge: str = ""


@record
class Leak:
    """A private word that was found: its placeholder, its form, and its place, byte ``at`` of ``where``."""

    placeholder: str
    form: str
    where: str
    at: int

    def __str__(self) -> str:
        """Describe the leak without the word itself."""
        return f"{self.placeholder} as {self.form} in {self.where}, byte {self.at}"


def needles(words: Iterable[tuple[str, Name]]) -> tuple[Needle, ...]:
    """The forms of private words; ``words`` are placeholders with the names that they stand for."""
    found: dict[tuple[bytes, bool], Needle] = {}
    for placeholder, name in words:
        for needle in _forms(placeholder, name):
            if len(needle.data) >= _SHORTEST:
                found.setdefault((needle.data, needle.folded), needle)
    return tuple(found.values())


def _forms(placeholder: str, name: Name) -> Iterator[Needle]:
    text = name.text
    path = name.kind == "home" or text.startswith("/")
    if not text.strip("/") or name.only_in_addresses(strict=True) or len(text) < _SHORTEST:
        return
    whole = name.kind in ("secret", "word") or len(text) >= SUBSTRING
    plain = path and is_ordinary(text.rstrip("/").rpartition("/")[2])
    edge = "plain path" if plain else "path" if path else "" if whole else "letters"
    # Bytes are lowered letter by letter, which reaches ASCII only: other letters are looked for in both cases.
    joined = (re.sub(r"[-._ ]", glue, text) for glue in ("-", "_", "")) if whole and name.kind == "user" else ()
    for text_ in dict.fromkeys((text.casefold(), text.lower(), text.upper(), *map(str.casefold, joined))):
        for encoding in _ENCODINGS:
            data = text_.encode(encoding, "ignore").lower()
            yield Needle(placeholder=placeholder, form=encoding, data=data, edge=edge)
    for form in escaped_forms(text):
        if len(form) > len(text):
            yield Needle(placeholder=placeholder, form="an escaped text", data=form.casefold().encode(), edge=edge)
    if len(text) >= SUBSTRING and not plain:
        for form in obscured_forms(text):
            yield Needle(placeholder=placeholder, form="hexadecimal or backwards", data=form.casefold().encode())
        for core in base64_cores(text.encode()):
            yield Needle(placeholder=placeholder, form="base64", data=core.encode(), folded=False)


def scan_for_leaks(data: bytes, where: str, wanted: Sequence[Needle]) -> list[Leak]:
    """Find ``wanted`` in ``data`` and in archives in it; one leak per needle and place."""
    return list(_scan_bytes(data, where, wanted, _DEPTH, [_UNPACKED]))


def _scan_bytes(data: bytes, where: str, wanted: Sequence[Needle], depth: int, left: list[int]) -> Iterator[Leak]:
    lowered = data.lower()
    for needle in wanted:
        text = lowered if needle.folded else data
        at = text.find(needle.data)
        while at >= 0 and not _stands_alone(text, at, at + len(needle.data), needle):
            at = text.find(needle.data, at + 1)
        if at >= 0:
            yield Leak(placeholder=needle.placeholder, form=needle.form, where=where, at=at)
    if depth:
        for name, inner in _inside(data, left):
            yield from _scan_bytes(inner, f"{where}/{name}", wanted, depth - 1, left)


def _stands_alone(data: bytes, start: int, end: int, needle: Needle) -> bool:
    """Whether the neighbours of a find show the word itself, not a part of another."""
    if not needle.edge:
        return True
    wide = 2 if needle.form.startswith("utf-16") else 1
    low = wide - 1 if needle.form == "utf-16-be" else 0
    before = data[start - wide + low : start - wide + low + 1] if start >= wide else b""
    after = data[end + low : end + low + 1]
    if needle.edge == "letters":
        return not _is_one_of(after, _LETTERS) and not _is_one_of(before, _LETTERS)
    if _is_one_of(after, _PATH_GOES_ON):
        return False
    # -I/root/include is a path in /root; /mnt/root/x is none.
    is_option = wide == 1 and start >= 2 and data[start - 2 : start - 1] == b"-"
    return needle.edge == "path" or is_option or not _is_one_of(before, _PATH_GOES_ON | {ord(".")})


def _is_one_of(letter: bytes, letters: frozenset[int]) -> bool:
    return bool(letter) and letter[0] in letters


def _inside(data: bytes, left: list[int]) -> Iterator[tuple[str, bytes]]:
    if data.startswith(_GZIP):
        inner = b""
        with suppress(zlib.error):
            inner = zlib.decompressobj(wbits=31).decompress(data, max(left[0], 1))
        left[0] -= len(inner)
        yield "(unpacked)", inner
    if not data.startswith(_ZIP):
        return
    blob = bytes_blob(data)
    directory = read_zip_directory(blob)
    for entry in directory.entries if directory is not None else ():
        if entry.size > left[0]:
            continue
        inner_ = read_entry(blob, entry, left[0])
        if inner_ is not None:
            left[0] -= len(inner_)
            yield entry.name, inner_
