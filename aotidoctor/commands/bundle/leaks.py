"""The leak test: every known private word, in every encoding it may travel in, is looked for in finished bytes.

It shares nothing with the expressions of the redactor but the list of words, so that a hole in those shows here.
Archives inside are opened (zip, gzip), to a bounded depth and size.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence

from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import bytes_blob
from aotidoctor.readers.package.integrity import read_entry
from aotidoctor.readers.package.zip_directory import read_directory
from aotidoctor.reports.redact.encodings import base64_cores, escaped, obscured
from aotidoctor.reports.redact.identity import SUBSTRING, is_ordinary
from aotidoctor.reports.redact.names import Name

_SHORTEST = 3
_DEPTH = 3
_UNPACKED = 512 << 20
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "latin-1")
_ZIP, _GZIP = b"PK\3\4", b"\x1f\x8b"
_PATH_GOES_ON = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


@record
class Needle:
    """A form of a private word. ``folded``: in any case of letters. ``edge`` says what may not stand beside it."""

    placeholder: str
    form: str
    data: bytes
    folded: bool = True
    edge: str = ""


@record
class Leak:
    """A word that is still there: which (by its placeholder), in what form, and at which byte of ``where``."""

    placeholder: str
    form: str
    where: str
    at: int

    def __str__(self) -> str:
        """Without the word itself."""
        return f"{self.placeholder} as {self.form} in {self.where}, byte {self.at}"


def needles(words: Iterable[tuple[str, Name]]) -> tuple[Needle, ...]:
    """What to look for: ``words`` are placeholders with what they stand for."""
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
    for form in escaped(text):
        if len(form) > len(text):
            yield Needle(placeholder=placeholder, form="an escaped text", data=form.casefold().encode(), edge=edge)
    if len(text) >= SUBSTRING and not plain:
        for form in obscured(text):
            yield Needle(placeholder=placeholder, form="hexadecimal or backwards", data=form.casefold().encode())
        for core in base64_cores(text.encode()):
            yield Needle(placeholder=placeholder, form="base64", data=core.encode(), folded=False)


def scan(data: bytes, where: str, wanted: Sequence[Needle]) -> list[Leak]:
    """What of ``wanted`` is in ``data``, archives in it included; one leak per needle and place."""
    return list(_scan(data, where, wanted, _DEPTH, [_UNPACKED]))


def _scan(data: bytes, where: str, wanted: Sequence[Needle], depth: int, left: list[int]) -> Iterator[Leak]:
    lowered = data.lower()
    for needle in wanted:
        at = _find(lowered if needle.folded else data, needle)
        if at is not None:
            yield Leak(placeholder=needle.placeholder, form=needle.form, where=where, at=at)
    if depth:
        for name, inner in _inside(data, left):
            yield from _scan(inner, f"{where}/{name}", wanted, depth - 1, left)


def _find(data: bytes, needle: Needle) -> int | None:
    at = data.find(needle.data)
    while at >= 0:
        if _stands_alone(data, at, at + len(needle.data), needle):
            return at
        at = data.find(needle.data, at + 1)
    return None


def _stands_alone(data: bytes, start: int, end: int, needle: Needle) -> bool:
    """Whether what stands beside a find lets it be the word, and not a part of another."""
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
        inner = _gunzip(data, left[0])
        left[0] -= len(inner)
        yield "(unpacked)", inner
    if not data.startswith(_ZIP):
        return
    blob = bytes_blob(data)
    directory = read_directory(blob)
    for entry in directory.entries if directory is not None else ():
        if entry.size > left[0]:
            continue
        inner_ = read_entry(blob, entry, left[0])
        if inner_ is not None:
            left[0] -= len(inner_)
            yield entry.name, inner_


def _gunzip(data: bytes, limit: int) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(data, max(limit, 1))
    except zlib.error:
        return b""
