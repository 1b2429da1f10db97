"""Text of a child, of a file name or of a package, made safe to show.

It may hold escape sequences that move the cursor, NUL bytes, lone surrogates and bidirectional overrides. All formats
show what is left after ``plain``.
"""

from __future__ import annotations

import re

from aotidoctor.model.phrases import plural

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~]?)"
)
_SPOKEN = "\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"
_CONTROLS = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f{_SPOKEN}\ud800-\udfff]")
_IN_JSON = re.compile(f"[{_SPOKEN}]")


def plain(text: str) -> str:
    r"""``text`` without escape sequences; other control characters become ``\ufffd``. Newlines and tabs stay."""
    without = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("\ufffd", without)


def neutral(text: str) -> str:
    r"""``text`` with ``\ufffd`` for each character that a terminal would obey, and as long as before."""
    return _CONTROLS.sub("\ufffd", text).replace("\r", "\ufffd")


def escaped_json(document: str) -> str:
    r"""A JSON document with ``\u009b`` for what a terminal or an editor would obey; its meaning is the same."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def one_line(text: str, limit: int = 300) -> str:
    """``plain`` text on one line, cut to ``limit`` characters with the count of what is missing."""
    line = " ".join(plain(text).split())
    return line if len(line) <= limit else f"{line[:limit]}… ({len(line) - limit} more characters)"


def tail(text: str, characters: int) -> str:
    """The last ``characters`` of ``plain`` text, from the start of a line, with the count of what is missing."""
    clean = plain(text).rstrip("\n")
    if len(clean) <= characters:
        return clean
    kept = clean[len(clean) - characters :]
    kept = kept.partition("\n")[2] or kept
    return f"… ({len(clean) - len(kept)} characters before this)\n{kept}"


def head(text: str, lines: int) -> str:
    """The first ``lines`` of ``plain`` text, each cut to a readable length, with the count of what is missing."""
    every = plain(text).strip("\n").split("\n")
    shown = [line if len(line) <= 400 else f"{line[:400]}…" for line in every[:lines]]
    more = len(every) - len(shown)
    return "\n".join([*shown, *([f"… ({plural(more, 'more line')})"] if more else [])])


def size(count: int) -> str:
    """Bytes for a person: ``1.5 MiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def seconds(value: float) -> str:
    """Seconds for a person: ``0.14 s``, ``12.3 s``."""
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def short_name(name: str, limit: int = 56) -> str:
    """A kernel's name in a table: of a long one the beginning and the number at its end."""
    return name if len(name) <= limit else f"{name[: limit - 9]}…{name[-8:]}"
