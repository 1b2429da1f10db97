"""The forms in which a word can hide: escapes of JSON, URLs and Python, UTF-16, base64. Shared with the leak test."""

from __future__ import annotations

import binascii
import json

from aotidoctor.reports.redact.identity import SUBSTRING

# So many letters of base64 that they stand there by chance once in many gigabytes.
_LEAST_BASE64 = 7
_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"


def escaped(word: str) -> tuple[str, ...]:
    """Texts that mean ``word`` after one or two rounds of unescaping; never the word itself."""
    percent = quoted(word)
    forms = {
        percent,
        quoted(percent),
        quoted(word, "/"),
        "".join(f"%{byte:02X}" for byte in word.encode()),
        json.dumps(word)[1:-1],
        json.dumps(word)[1:-1].replace("/", "\\/"),
        json.dumps(json.dumps(word)[1:-1])[1:-1],
        "".join(f"\\u{ord(char):04x}" for char in word if ord(char) < 0x10000),
        repr(word)[1:-1],
        repr(word.encode())[2:-1],
        "".join(f"\\x{byte:02x}" for byte in word.encode()),
    }
    if not word.isascii():
        forms |= _other_letters(word)
    return tuple(sorted(forms - {word, ""}))


def _other_letters(word: str) -> set[str]:
    """Accents as letters of their own, and UTF-8 that was read as Latin-1."""
    import unicodedata  # noqa: PLC0415 - most names do without

    return {unicodedata.normalize("NFD", word), unicodedata.normalize("NFC", word), word.encode().decode("latin-1")}


def quoted(text: str, kept: str = "") -> str:
    """``text`` as a URL holds it. The library's function costs an import that every report would pay for."""
    plain = f"{_PLAIN}{kept}".encode()
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in text.encode())


def interleaved(word: str) -> str:
    """UTF-16 of ``word`` that was decoded as if it were a single-byte encoding."""
    return "\0".join(word)


def obscured(word: str) -> tuple[str, ...]:
    """``word`` in hexadecimal and backwards; none for a short one, which would be found by chance."""
    if len(word) < SUBSTRING:
        return ()
    backwards = word[::-1]
    return (word.encode().hex(), *((backwards,) if backwards.casefold() != word.casefold() else ()))


def base64_cores(word: bytes) -> tuple[str, ...]:
    """What base64 makes of ``word`` whatever stands around it: one text per alignment, none for a short word."""
    found = []
    for shift in range(3):
        text = binascii.b2a_base64(b"\0" * shift + word, newline=False).decode().rstrip("=")
        # Letters that also hold bits of a neighbor are left out.
        first = -(-shift * 8 // 6)
        last = (shift + len(word)) * 8 // 6
        core = text[first:last]
        if len(core) >= _LEAST_BASE64:
            found.append(core)
            found.append(core.translate(str.maketrans("+/", "-_")))
    return tuple(dict.fromkeys(found))
