r"""Expressions for the names that are known: the home folder, users, hosts, secrets, and words that the user gave.

A user's or host's name is looked for at word boundaries, in any case, after escapes (``%2F``, ``\n``), inside
identifiers (``torchinductor_NAME``, ``NAMENet``) and inside mangled C++ names (``_ZN4NAME3fooEv``); a short or ordinary
one only in an address, such as ``root@``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from aotidoctor.model.record import record
from aotidoctor.reports.redact.encodings import base64_cores, escaped, interleaved, obscured
from aotidoctor.reports.redact.identity import SUBSTRING, is_ordinary, is_structural
from aotidoctor.reports.redact.patterns import AFTER_ESCAPE, Kind

_JOINT = re.compile(r"[-._ ]")
_SEPARATOR = r"(?:/|\\+/|%2[Ff]|%252[Ff]|\\+u002[Ff])"


@record(kw_only=False)
class Name:
    """``kind`` is ``home``, ``user``, ``host``, ``secret`` or ``word``."""

    kind: str
    text: str

    @property
    def everywhere(self) -> bool:
        """Whether the name is hidden wherever its letters stand."""
        return self.kind in ("secret", "word")

    def only_in_addresses(self, *, strict: bool) -> bool:
        """Whether the name is so short or so ordinary that it is hidden in ``name@`` and ``@name`` only."""
        if self.kind not in ("user", "host"):
            return False
        return is_ordinary(self.text) or (strict and is_structural(self.text))


def expressions(name: Name, *, strict: bool) -> Iterator[Kind]:
    """Expressions that find ``name``, each with the one group name it is to be given by the caller (``{group}``).

    ``strict`` is for bundles: also inside longer words, in base64, in hexadecimal and backwards.
    """
    if name.kind == "home":
        yield from _home(name.text, strict=strict)
        return
    if name.only_in_addresses(strict=strict):
        yield _address(name)
        return
    inside = strict and len(name.text) >= SUBSTRING
    yield _anywhere(name.text) if name.everywhere else _bounded(name.text, inside=inside)
    for form in (*escaped(name.text), interleaved(name.text)):
        if len(form) > len(name.text):
            yield replace(_anywhere(form), escaped=True)
    if strict:
        for core in base64_cores(name.text.encode()):
            yield Kind(re.escape(core), (core.casefold(),))
        for form in obscured(name.text):
            yield _anywhere(form)


def _anywhere(form: str) -> Kind:
    return Kind(f"(?i:{re.escape(form)})", (form.casefold(),))


def _spelt(name: str) -> tuple[str, str]:
    """An expression for ``marie.anne`` that finds ``marie_anne`` and ``marieanne``, too; and its longest part."""
    parts = [part for part in _JOINT.split(name) if part]
    if len(parts) < 2 or len(name) < SUBSTRING:
        return re.escape(name), name.casefold()
    return "[-._ ]?".join(map(re.escape, parts)), max(parts, key=len).casefold()


def _bounded(name: str, *, inside: bool) -> Kind:
    word, needle = _spelt(name)
    if inside:
        return Kind(f"(?i:{word})", (needle,))
    capital = re.escape(name[:1].upper() + name[1:])
    length = f"(?<=(?<![0-9]){len(name)})" if len(name) < 10 else f"(?<={len(name)})"
    start = rf"(?:(?<![A-Za-z0-9])|{AFTER_ESCAPE})"
    end = r"(?:(?![A-Za-z0-9])|(?=[A-Z][a-z]))"
    pattern = f"(?:{start}(?i:{word}){end}|{length}(?i:{word})|(?<=[a-z]){capital}{end})"
    return Kind(pattern, (needle,))


def _address(name: Name) -> Kind:
    word = re.escape(name.text)
    form = f"{word}(?=@)" if name.kind == "user" else f"(?<=@){word}"
    return Kind(rf"(?<![\w.-]){form}(?![\w-])", (name.text.casefold(),))


def _home(home: str, *, strict: bool) -> Iterator[Kind]:
    path = home.rstrip("/")
    if not path.strip("/"):
        return
    end = r"(?![\w-])(?!\.\w)"
    # A compiler's option may stand before it: -I/root/include. So ordinary a folder as /root has namesakes elsewhere.
    start = "" if strict and not is_ordinary(path.rpartition("/")[2]) else r"(?:(?<![\w.-])|(?<=-[A-Z]))"
    yield Kind(f"{start}{re.escape(path)}{end}", (path.casefold(),))
    parts = [re.escape(part) for part in path.strip("/").split("/")]
    escape = r"(?:\\+/|%2[Ff]|%252[Ff]|\\+u002[Ff])"
    needle = path.rsplit("/", 1)[-1].casefold()
    yield Kind(f"{escape}{_SEPARATOR.join(parts)}{end}", (needle,), escaped=True)
