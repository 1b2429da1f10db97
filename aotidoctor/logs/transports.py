"""Other ways to read a short log: as it was before a terminal, a mail or a JSON string put it into other lines.

Which lines belong together cannot be seen with certainty. So nothing is undone for good: each way is a reading of its
own, and the caller takes the one that is understood. Lines keep the numbers of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from aotidoctor.logs.lines import decoded
from aotidoctor.logs.prefilter import Numbered
from aotidoctor.logs.prefixes import bare
from aotidoctor.logs.spelling import plain

# Terminals and mails are not narrower, and hardly wider.
_NARROWEST, _WIDEST = 38, 400
_MOST_LINES = 4000
# So many numbers in a row do not come by chance.
_COUNTED = 4
_ESCAPE = re.compile(r'\\(?P<letter>[nrt"/\\]|u[0-9a-fA-F]{4})')
_LETTERS = {"n": "\n", "r": "", "t": "\t", '"': '"', "/": "/", "\\": "\\"}
_COUNT = re.compile(r"[ \t]*(?P<number>\d{1,6})(?:[ \t]*[|:\u2502.)]|(?=[ \t]|$))[ \t]?")
_MARGIN = re.compile(r"(?:[ \t]*(?:[>#*|;]|//|E(?=  ))?[ \t]?)")


@dataclass(frozen=True, slots=True)
class Reading:
    """Lines as they may have been.

    ``is_sure``: the log shows marks of it that hardly come by chance. ``is_certain``: it can hardly be anything else.
    """

    lines: list[Numbered]
    is_sure: bool
    is_certain: bool = False


def other_readings(lines: Sequence[Numbered]) -> Iterator[Reading]:
    """The ways that fit, the likeliest first."""
    if len(lines) > _MOST_LINES:
        return
    texts = [(number, decoded(raw).rstrip("\r")) for number, raw in lines]
    split = _unescaped(texts)
    if split is not None:
        yield split
        texts = _decoded(split)
    inner = _without_margin(texts)
    counted = _without_numbers(inner)
    if counted is not None:
        yield counted
        inner = _decoded(counted)
    for way in _WAYS:
        found = way(inner)
        if found is not None:
            yield found


def _decoded(reading: Reading) -> list[tuple[int, str]]:
    return [(number, raw.decode("utf-8", "replace")) for number, raw in reading.lines]


def _encoded(texts: Sequence[tuple[int, str]], *, is_sure: bool) -> Reading:
    return Reading([(number, text.encode("utf-8", "replace")) for number, text in texts], is_sure)


def _unescaped(texts: Sequence[tuple[int, str]]) -> Reading | None:
    r"""A string of JSON or of a ``repr``: ``\n`` stands where a line ended."""
    breaks = sum(text.count("\\n") for _, text in texts)
    if not breaks:
        return None
    made: list[tuple[int, str]] = []
    for number, text in texts:
        parts = [text] if "\\n" not in text else _ESCAPE.sub(_letter, text.strip("'\", ")).split("\n")
        made.extend((number, part) for part in parts)
    found = _encoded(made, is_sure=breaks > len(texts))
    return replace(found, is_certain=found.is_sure)


def _letter(hit: re.Match[str]) -> str:
    letter = hit["letter"]
    return chr(int(letter[1:], 16)) if letter[0] == "u" else _LETTERS[letter]


def _without_margin(texts: Sequence[tuple[int, str]]) -> Sequence[tuple[int, str]]:
    """Without what is before every line: a quote, an indent."""
    said = [text for _, text in texts if text.strip()]
    if len(said) < 2:
        return texts
    found = _MARGIN.match(said[0])
    margin = found[0] if found is not None else ""
    while margin and not all(text.startswith(margin) or text == margin.rstrip() for text in said):
        margin = margin[:-1]
    return [(number, text[len(margin) :]) for number, text in texts] if margin else texts


def _without_numbers(texts: Sequence[tuple[int, str]]) -> Reading | None:
    """Without the numbers that an editor or a web page shows before its lines: each is higher than the one before."""
    hits = [(_COUNT.match(text), number, text) for number, text in texts if text.strip()]
    counts = [int(hit["number"]) for hit, _, _ in hits if hit is not None]
    if len(counts) < _COUNTED or len(counts) < len(hits) or any(a >= b for a, b in pairwise(counts)):
        return None
    return _encoded([(number, text[hit.end() :] if hit else text) for hit, number, text in hits], is_sure=True)


def _cut_at_the_edge(texts: Sequence[tuple[int, str]]) -> Reading | None:
    """A terminal's lines: one that is as wide as the widest goes on in the next."""
    width = max((len(text) for _, text in texts), default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    joined: list[tuple[int, str]] = []
    goes_on, cuts = False, 0
    for number, text in texts:
        if goes_on and joined and text and not _is_new(text) and not _is_source(joined[-1][1], text):
            joined[-1] = (joined[-1][0], joined[-1][1] + text)
            cuts += 1
        else:
            joined.append((number, text))
        goes_on = len(text) == width
    return _encoded(joined, is_sure=cuts > 2) if cuts else None


def _cut_between_words(texts: Sequence[tuple[int, str]]) -> Reading | None:
    """A mail's or an editor's lines: the first word of the next would not have fitted."""
    width = max((len(text) for _, text in texts), default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    joined: list[tuple[int, str]] = []
    last, cuts = "", 0
    for number, text in texts:
        word = text.lstrip().partition(" ")[0]
        is_own = not last or not word or len(last) + 1 + len(word) <= width or _is_new(text) or _is_source(last, text)
        if is_own:
            joined.append((number, text))
        else:
            glue = "" if last.endswith(("/", "_", "-")) or (len(last) >= width and " " not in last.strip()) else " "
            joined[-1] = (joined[-1][0], joined[-1][1] + glue + text.lstrip())
            cuts += 1
        last = text
    return _encoded(joined, is_sure=False) if cuts else None


_FRAME = re.compile(r'\s{0,20}File "[^"\n]{1,400}", line \d{1,9}, in [\w.<>]{1,200}$')


def _is_source(before: str, text: str) -> bool:
    """Whether it is the line of source below a line of a traceback."""
    return text.startswith("    ") and _FRAME.match(before) is not None


_NEW = re.compile(r"\s*(?:File \"|Traceback \(|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): )|\S+:\d+:\d+: ")


def _is_new(text: str) -> bool:
    """Whether it begins a line of its own for certain: by what it says, or by a logger's prefix."""
    inner = bare(text)
    return bool(inner.ranks) or inner.stamped or _NEW.match(plain(inner.text)) is not None


_WAYS: tuple[Callable[[Sequence[tuple[int, str]]], Reading | None], ...] = (_cut_at_the_edge, _cut_between_words)
