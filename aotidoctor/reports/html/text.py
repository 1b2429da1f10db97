"""Text of others as HTML, and the links between what is said and what shows it.

Everything that reaches the page goes through ``clean``, also where the template escapes by itself: control characters,
bidirectional overrides and code points that HTML does not allow never get there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from markupsafe import Markup, escape

from aotidoctor.reports.text import one_line, plain

# What `plain` leaves and HTML does not allow: the code points that are no characters, in each of the 17 planes.
_NO_CHARACTERS = "".join(chr(plane * 0x10000 + last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
_FORBIDDEN = re.compile(f"[\ufdd0-\ufdef{_NO_CHARACTERS}]")
# Nobody sees these, and what is copied holds them.
_HIDDEN = re.compile("[\u00ad\u180e\u200b-\u200d\u2060-\u2064\u206a-\u206f\u3164\uffa0\U000e0000-\U000e007f]")
_ANCHOR = re.compile(r"[A-Z]{1,4}[0-9]{1,9}")
_NAME = r"([ERW][0-9]{1,6})"
_MENTION = re.compile(rf"(?<![\w.\['\"/-])(?:\[{_NAME}\]|{_NAME})(?![\w'\"/-]|\.\w)")
_WHOLE = 200_000
"""Of a longer text only the end is looked at: cleaning ten megabytes takes as long as all the rest."""


def clean(text: str) -> str:
    """``plain`` text without code points that HTML forbids, and without those that nobody can see."""
    without = _HIDDEN.sub("\ufffd", plain(text))
    return _FORBIDDEN.sub("\ufffd", without)


def finalize(value: object) -> object:
    """What the template writes: markup as it is, all else as ``clean`` text that the template then escapes."""
    return value if isinstance(value, Markup) else clean(str(value))


def esc(text: str) -> Markup:
    """``text``, cleaned and escaped."""
    return escape(clean(text))


def line(text: str, limit: int = 400) -> Markup:
    """``text`` on one line, cut with a count."""
    return escape(clean(one_line(text, limit)))


def code(text: str, limit: int = 400) -> Markup:
    """``text`` on one line as code; nothing for nothing."""
    return Markup("<code>{}</code>").format(line(text, limit)) if text else Markup("")


def marked(text: str, limit: int = 400) -> Markup:
    """``text`` as the part that is wrong, in words for those who do not see the colour."""
    return Markup('<mark><span class="hidden">differs: </span>{}</mark>').format(line(text, limit))


def dim(text: str, limit: int = 400) -> Markup:
    """``text`` in the background."""
    return Markup('<span class="dim">{}</span>').format(line(text, limit)) if text else Markup("")


def anchor(name: str) -> str:
    """``name`` as the id of an element; empty where it is not one of ours."""
    return name if _ANCHOR.fullmatch(name) else ""


def link(name: str, text: str = "") -> Markup:
    """A link to the evidence, run or line of a log ``name``; ``text`` is what is shown of it."""
    known = anchor(name)
    shown = line(text or name, 60)
    return Markup('<a class="ref" href="#{}">{}</a>').format(known, shown) if known else shown


def links(names: Iterable[str]) -> Markup:
    """Links side by side."""
    return Markup(" ").join(link(name) for name in names)


def linked(text: str, known: Collection[str], limit: int = 600) -> Markup:
    """``text`` on one line, in which each mention of evidence or a run that there is (``[E1]``, ``R2``) is a link."""
    shown, at, parts = clean(one_line(text, limit)), 0, []
    for found in _MENTION.finditer(shown):
        name = found[1] or found[2]
        if name in known:
            parts += [escape(shown[at : found.start()]), link(name)]
            at = found.end()
    return Markup("").join([*parts, escape(shown[at:])])


def ending(text: str, room: int) -> tuple[str, int]:
    """The last ``room`` characters from the start of a line, and how many characters stand before them."""
    cut = max(0, len(text) - _WHOLE)
    shown = clean(text[cut:]).rstrip("\n")
    if len(shown) > room:
        kept = shown[len(shown) - room :]
        kept = kept.partition("\n")[2] or kept
        return kept, cut + len(shown) - len(kept)
    return shown, cut
