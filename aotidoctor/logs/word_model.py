"""Guess a cause from the words of a short log that failed and that no rule matches: the last resort.

The table ``alike.bin`` was learnt from the texts of ``tests/corpus`` and from their causes (``python -m
tests.corpus.learn``): the weights of each word and of each two words in a row for and against a cause. It is a linear
model, without a hidden part: the score of a cause is the sum over the words, and the words that count most are shown.
Failures of other programs and texts without one are kinds of their own, for which no cause is given. The table is read
when it is first needed.
"""

from __future__ import annotations

import re
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from math import sqrt
from pathlib import Path
from sys import byteorder

from aotidoctor.logs.harmless import has_mark, names_linked
from aotidoctor.logs.lines import expressions
from aotidoctor.logs.origins import is_loose
from aotidoctor.logs.patterns import is_certain_cause
from aotidoctor.model.report import LogEvent, LogMatch, LogPattern

TABLE = Path(__file__).with_name("alike.bin")
# Kinds that are no cause: another program's failure, one of unknown cause, none at all.
NO_CAUSE = ("other", "unknown", "healthy")
# The least score of a cause, and its least lead over the next one.
LEAST, _AHEAD = 0.35, 0.05
# A match of at most this confidence yields to words with such a score and lead; the confidence of a lead.
_WEAK, _CLEAR, _LEADS, _LEAD = 0.45, 0.4, 0.3, 0.25
# The least and the highest confidence of a guess, and its growth with the score.
_SURE, _SURER, _GROWS = 0.3, 0.42, 0.3
_FIRST, _LAST, _WORDS, _LETTERS = 20, 60, 120, 14
_WORD = re.compile(
    r"sm_?\d{2,3}|gfx\d|\bC\d{4}\b|LNK\d{4}|(?:[Ff]loat|u?int|fp|bf|complex)\d{1,3}|[A-Za-z]{2,}|_{1,2}[a-z]{1,40}"
)
_HUMP = re.compile(r"([a-z])([A-Z])")
# A line that complains counts more.
_COMPLAINS = re.compile(
    r"(?i:error|exception|fail|cannot|unsupported|not |assert|wrong|illegal|invalid|missing|undefined|expected|unable"
    r"|crash|fault|mismatch)"
)
_MORE, _NAMED = 2.0, 5
# A cause needs one of its own words; words that are merely near it are not enough.
_OWN_WORDS: Mapping[str, str] = dict(text.split(" ", 1) for text in expressions("own_words"))
# Steps of what a byte holds.
_STEPS_OF_RARITY = 16


@dataclass(frozen=True)
class WordWeights:
    """The table: by the number of a word its rarity, and its ``weights`` for and against some ``kinds``."""

    names: Sequence[str]
    scale: float
    keys: Sequence[int]
    rarity: bytes
    starts: Sequence[int]
    kinds: bytes
    weights: Sequence[int]

    def at(self, word: str) -> int:
        """The place of a word; -1 where it is not known."""
        key = number(word)
        place = bisect_left(self.keys, key)
        return place if place < len(self.keys) and self.keys[place] == key else -1


def number(word: str) -> int:
    """The number of a word in the table: its CRC-32."""
    return zlib.crc32(word.encode())


def weigh_words(lines: Iterable[str]) -> dict[str, float]:
    """The words of a text, and each two in a row, with their weights."""
    chosen = [line for line in lines if line.strip()]
    chosen = chosen if len(chosen) <= _FIRST + _LAST else [*chosen[:_FIRST], *chosen[-_LAST:]]
    found: dict[str, float] = {}
    for line in chosen:
        weight = _MORE if _COMPLAINS.search(line) is not None else 1.0
        parts = _WORD.findall(line)[:_WORDS]
        words = [part[:_LETTERS] for word in parts for part in _HUMP.sub(r"\1 \2", word).lower().split()]
        for one in (*words, *(f"{first} {second}" for first, second in pairwise(words))):
            found[one] = max(found.get(one, 0.0), weight)
    return found


def scores(text: Mapping[str, float], table: WordWeights) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """The score of each kind, and by kind the share of each word in it."""
    total = 0.0
    shares: dict[str, dict[str, float]] = {name: {} for name in table.names}
    for word, weight in text.items():
        at = table.at(word)
        if at < 0:
            continue
        own = weight * table.rarity[at] / _STEPS_OF_RARITY
        total += own * own
        for place in range(table.starts[at], table.starts[at + 1]):
            shares[table.names[table.kinds[place]]][word] = own * table.weights[place] * table.scale
    size = sqrt(total) or 1.0
    return {name: sum(parts.values()) / size for name, parts in shares.items()}, shares


def reconsider_matches(matches: Sequence[LogMatch], event: LogEvent, lines: Sequence[str]) -> tuple[LogMatch, ...]:
    """``matches`` of a short log in the light of its words.

    Where no match is certain, the cause that the words suggest comes first; ``event`` is the first unknown failure.
    Where a match rests on a place or on words in passing and the words as a whole clearly suggest another cause, that
    one comes before it; where they are another program's and nothing is a sign of torch, all matches become leads.
    """
    first = next((match for match in matches if is_certain_cause(match)), None)
    if first is not None and (first.confidence > _WEAK or not (is_loose(first) or first.facts.get("unmarked"))):
        return tuple(matches)
    every, shares = scores(weigh_words(lines), words())
    best = max(every, key=lambda name: every[name])
    if first is None:
        return (*_suspect_causes(every, shares, event, lines), *matches)
    if every[best] < _CLEAR or every[best] - every.get(first.pattern.cause, 0.0) < _LEADS:
        return tuple(matches)
    if best == "other" and first.facts.get("unmarked") and not names_linked(first.text):
        return tuple(replace(match, confidence=min(match.confidence, _LEAD)) for match in matches)
    if best in NO_CAUSE or not is_loose(first) or not _has_own_word(best, "\n".join(lines)):
        return tuple(matches)
    return (_match(best, every[best], shares[best], first.event), *matches)


def _suspect_causes(
    every: Mapping[str, float], shares: Mapping[str, Mapping[str, float]], event: LogEvent, lines: Sequence[str]
) -> tuple[LogMatch, ...]:
    """The cause that the words clearly suggest; empty where they do not."""
    first, second = sorted(every, key=lambda name: -every[name])[:2]
    if first in NO_CAUSE or every[first] < LEAST or every[first] - every[second] < _AHEAD:
        return ()
    # A text without a sign of torch may be another program's.
    text = "\n".join(lines)
    if not (has_mark(text) and _has_own_word(first, text)):
        return ()
    return (_match(first, every[first], shares[first], event),)


def _has_own_word(cause: str, text: str) -> bool:
    own = _OWN_WORDS.get(cause)
    return own is None or re.search(own, text, re.IGNORECASE) is not None


def _match(cause: str, score: float, shares: Mapping[str, float], event: LogEvent) -> LogMatch:
    sure = round(min(_SURE + _GROWS * (score - LEAST), _SURER), 2)
    record = LogPattern(cause=cause, regex="", example="", source="", confidence=sure, is_suspect=True)
    apart: list[str] = []
    for word in sorted(shares, key=lambda word: -shares[word])[: 4 * _NAMED]:
        # Without the words that another one holds.
        if not any(word in other.split() or set(word.split()) & set(other.split()) for other in apart):
            apart.append(word)
    words = ", ".join(f"`{word}`" for word in apart[:_NAMED])
    text = event.text.partition("\n")[0]
    return LogMatch(event=event, pattern=record, line=event.first, text=text, facts={"alike": words}, confidence=sure)


@lru_cache(maxsize=1)
def words() -> WordWeights:
    """The table of this release."""
    return unpack_table(TABLE.read_bytes())


def pack_table(
    names: Sequence[str], scale: float, entries: Mapping[int, tuple[int, Sequence[tuple[int, int]]]]
) -> bytes:
    """The bytes of a table: by number of a word its rarity, and pairs of kind and weight in steps of ``scale``."""
    keys = sorted(entries)
    pairs = [pair for key in keys for pair in entries[key][1]]
    head = f"{' '.join(names)}\n{scale!r} {len(keys)} {len(pairs)}\n".encode()
    body = b"".join(key.to_bytes(4, "little") for key in keys)
    body += bytes(entries[key][0] for key in keys) + bytes(len(entries[key][1]) for key in keys)
    body += bytes(kind for kind, _ in pairs) + bytes(weight & 0xFF for _, weight in pairs)
    return zlib.compress(head + body, 9)


def unpack_table(raw: bytes) -> WordWeights:
    """The table in the bytes that ``pack_table`` made."""
    names, sizes, body = zlib.decompress(raw).split(b"\n", 2)
    scale, known, pairs = sizes.split()
    count, ends = int(known), [0]
    for size in (4 * count, count, count, int(pairs), int(pairs)):
        ends.append(ends[-1] + size)
    keys, rarity, counts, kinds, weights = (body[start:end] for start, end in pairwise(ends))
    numbers = array("I", keys)
    if byteorder == "big":
        numbers.byteswap()
    starts = array("I", [0, *accumulate(counts)])
    return WordWeights(names.decode().split(), float(scale), numbers, rarity, starts, kinds, array("b", weights))
