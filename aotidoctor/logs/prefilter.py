"""Reduce blocks of a log to the few lines that matter: those with a telling word, and their surroundings.

Searching a whole block for words is fast, examining lines is not. So a block without a telling word costs no more
than a search; one with such a word is cut into lines; and of lines that have the same letters, the first alone is
examined and the others are counted. A log of a million repeated errors is then as cheap as one of noise.

Python has no search for many words at once, and an alternation of them tries each at every character. So the text is
first reduced to its letters in lower case, and each word to a part of it that begins with a letter that is rare in
English. The alternation of those parts, as a tree, then has to examine every seventh character only, however many words
there are. A match is a hint; the lines decide.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from aotidoctor.logs.lines import line_pieces
from aotidoctor.logs.patterns import Pattern

# The search for telling words.
# Stems, so that few of them cover much; more exact where the bare word is an everyday one ("default", "frame").
BROAD = (
    "rror", "xception", "traceback (most recent", "failed", "failure", "after throwing an instance", "abort", "killed",
    "segfault", "segmentation", "illegal instruction", "illegal memory", "undefined symbol", "undefined reference",
    "shared object file", "GLIBCXX_", "fatal", "double free or corruption", "SIGSEGV", "SIGABRT", "SIGILL", "SIGBUS",
    "SIGFPE", "received signal", "caught signal", "EXC_BAD_ACCESS", "WARNING: ThreadSanitizer",
    "WARNING: MemorySanitizer",
    "exit code", "exited with", "Invalid __global__", "NVRM: Xid", "critical", "panic", "severe",
)  # fmt: skip
# A part of a word is nine letters long; a word that has fewer is looked for from its first rare letter on.
_LEAST, _MOST = 4, 9
# A shorter word of a pattern may be an everyday one.
_RARE_ENOUGH = 12
_RARE = "jqzxkvbgf"
# A word has no letter so often in a row; what the head of a text has much of, all of it may have.
_RUN, _HEAD = 8, 4096
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_LOWER = bytes.maketrans(_LETTERS.upper(), _LETTERS)
_OTHERS = bytes(byte for byte in range(256) if byte not in _LETTERS + _LETTERS.upper() + b"\n")

Tree = dict[str, "Tree"]


def letters(text: bytes) -> bytes:
    """The letters of ``text`` in lower case, and its line ends."""
    return text.translate(_LOWER, _OTHERS)


def squeeze_runs(reduced: bytes) -> bytes:
    """Part of a very long line, without long runs of a rare letter, each of which a search would look at."""
    head = reduced[:_HEAD]
    for letter in _RARE.encode():
        run = bytes([letter]) * _RUN
        if head.count(run) * _RUN > _HEAD // 4:
            reduced = reduced.replace(run, run[:1])
    return reduced


class KeywordFilter:
    """Search text for many words at once."""

    def __init__(self, words: Iterable[str]) -> None:
        parts = _parts_of(words)
        # Where one part holds another, looking for the shorter one is enough.
        spans = [(at, end) for end in range(_LEAST, _MOST + 1) for at in range(end - _LEAST + 1)]
        shortest = [
            part for part in parts if not any(part[at:end] in parts for at, end in spans if part[at:end] != part)
        ]
        rare = [part for part in shortest if part[0] in _RARE]
        self._common = tuple(part.encode() for part in sorted(shortest) if part[0] not in _RARE)
        self._tree = [_alternation(_tree(rare)).encode()] if rare else []

    @cached_property
    def _rare(self) -> re.Pattern[bytes]:
        return _any_of(self._tree)

    @cached_property
    def _all(self) -> re.Pattern[bytes]:
        return _any_of([*self._tree, *self._common])

    def may_tell(self, reduced: bytes) -> bool:
        """Whether one of the words may be in a block of which ``reduced`` are the letters."""
        return self._rare.search(reduced) is not None or any(part in reduced for part in self._common)

    def telling(self, lines: set[bytes]) -> set[bytes]:
        """The ``lines``, reduced to letters, that have one of the words."""
        text = b"\n".join(lines)
        found: set[bytes] = set()
        hit = self._all.search(text)
        while hit is not None:
            end = text.find(b"\n", hit.end())
            end = len(text) if end < 0 else end
            found.add(text[text.rfind(b"\n", 0, hit.start()) + 1 : end])
            hit = self._all.search(text, end)
        return found


def _parts_of(words: Iterable[str]) -> set[str]:
    return {part for word in words if (part := _part(letters(word.encode()).decode()))}


def _any_of(parts: list[bytes]) -> re.Pattern[bytes]:
    """An expression for any of ``parts``; without any it never matches."""
    return re.compile(b"|".join(parts) if parts else rb"(?!)")


def known_words(patterns: Iterable[Pattern]) -> list[str]:
    """The words of which every match of the patterns has one."""
    return [literal for pattern in patterns for literal in pattern.literals]


def telling_words(patterns: Iterable[Pattern]) -> list[str]:
    """The broad words, and the words of the patterns whose messages come without a broad one.

    An example shows what a message looks like. Everyday words are left out, as most lines have them, and so are words
    without a rare letter, each of which would cost a search of its own.
    """
    broad = [part.encode() for part in _parts_of(BROAD)]
    examples = ((pattern, letters(pattern.record.example.encode())) for pattern in patterns)
    own = [pattern for pattern, example in examples if not any(part in example for part in broad)]
    reduced = ((word, letters(word.encode()).decode()) for word in known_words(own))
    return [*BROAD, *(word for word, own in reduced if len(own) >= _RARE_ENOUGH and _part(own)[0] in _RARE)]


def _part(word: str) -> str:
    """The part of ``word`` to look for; empty where it is too short to tell anything."""
    if len(word) < _LEAST:
        return ""
    starts = range(max(len(word) - _MOST + 1, min(len(word) - _LEAST, 2) + 1))
    best = min(starts, key=lambda at: (_RARE + word[at]).index(word[at]))
    return word[best : best + _MOST]


def _tree(words: Iterable[str]) -> Tree:
    root: Tree = {}
    for word in words:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
    return root


def _alternation(node: Tree) -> str:
    """The tree as a regular expression. No word of it begins another one."""
    branches = [letter + _alternation(below) for letter, below in sorted(node.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})" if branches else ""


# Lines with the same letters. Lines remembered: plain ones, and telling ones. A longer line is news each time.
_PLAIN, _TELLING, _LONGEST = 20_000, 100_000, 2_000
# The share of new lines above which it is not worth the effort to remember them, and for how many blocks.
_NEW, _REST = 0.3, 120
# So few lines are counted one by one.
_FEW = 8


class LineMemory:
    """Remember lines by their letters."""

    def __init__(self, keywords: KeywordFilter) -> None:
        self._keywords = keywords
        self._plain: set[bytes] = set()
        self._counts: dict[bytes, int] = {}
        self._rest = 0

    def count(self, raw: bytes) -> int:
        """How often a telling line with these letters was there."""
        return self._counts.get(letters(raw), 0)

    def news(self, reduced: bytes) -> list[int]:
        """The places of telling lines in a block that are unlike all before; ``reduced`` are its letters."""
        if b"\n" not in reduced:
            reduced = squeeze_runs(reduced)
        if self._rest > 0:
            self._rest -= 1
            if not self._keywords.may_tell(reduced):
                return []
        keys = reduced.split(b"\n")
        distinct = set(keys)
        fresh = distinct - self._plain
        if self._rest == 0 and len(fresh) > _NEW * len(keys):
            self._rest = _REST
        known = fresh & self._counts.keys()
        fresh -= known
        new = self._keywords.telling(fresh) if self._keywords.may_tell(b"\n".join(fresh)) else set()
        if len(self._plain) < _PLAIN:
            self._plain.update(key for key in fresh - new if len(key) <= _LONGEST)
        telling = known | new
        every = Counter(keys) if len(telling) > _FEW else None
        for key in telling:
            if key in self._counts or (len(self._counts) < _TELLING and len(key) <= _LONGEST):
                times = keys.count(key) if every is None else every[key]
                self._counts[key] = self._counts.get(key, 0) + times
        places: dict[bytes, int] = {}
        for at, key in enumerate(keys) if new else ():
            if key in new:
                places.setdefault(key, at)
        return list(places.values())


# The filter.
BEFORE, AFTER = 40, 80
# A log up to this size is read line by line.
SMALL = 1 << 18
# A longer segment is read in parts.
LONGEST = 4000
# Bytes after which a line is read in parts, and after which it is cut.
_PATIENCE, LONG_LINE = 1 << 20, 1 << 15
# Lines read closely, after which only the end of the log is.
BUDGET = 30_000
_LATE_BLOCKS, _LATE_LINES = 4, 2000

Numbered = tuple[int, bytes]


class Prefilter:
    """Reduce blocks to segments of numbered lines. ``is_small``: they are the whole log."""

    def __init__(self, keywords: KeywordFilter) -> None:
        self._memory = LineMemory(keywords)
        self._number = 1
        self._ended = True
        self._open: list[Numbered] = []
        self._wants = 0
        self._tail: list[Numbered] = []
        # The block before, if it was quiet, and its last line: cut into lines where they are needed.
        self._quiet: tuple[bytes, int] | None = None
        self._spent = 0
        self._late: deque[tuple[int, bytes]] = deque(maxlen=_LATE_BLOCKS)
        self.skipped = 0
        self.is_small = False

    @property
    def lines(self) -> int:
        """Lines read so far, with one that has no end yet."""
        return self._number - (1 if self._ended else 0)

    def count(self, raw: bytes) -> int:
        """How often a telling line with these letters was there."""
        return self._memory.count(raw)

    def feed(self, blocks: Iterable[bytes]) -> Iterator[list[Numbered]]:
        """The segments of ``blocks``, in order."""
        blocks = iter(blocks)
        first = next(blocks, b"")
        second = next(blocks, b"")
        if not second and len(first) <= SMALL:
            # A log so small that every line of it can be looked at, with or without a telling word.
            self.is_small = True
            lines = first.split(b"\n")
            self._ended = not lines[-1]
            self._number += len(lines) - 1
            if self._ended:
                lines.pop()
            for start in range(0, len(lines), LONGEST):
                yield list(enumerate(lines[start : start + LONGEST], start + 1))
            return
        for block in _at_line_ends(chain((first, second), blocks)):
            yield from self._block(block)
        for number, block in self._late:
            lines = block.rsplit(b"\n", _LATE_LINES)[-_LATE_LINES:]
            yield from self._telling(lines, range(0, len(lines), AFTER), number)
        yield from self._close()

    def _block(self, block: bytes) -> Iterator[list[Numbered]]:
        reduced = letters(block)
        # Line ends are counted in the shorter text.
        number, ends = self._number, reduced.count(b"\n")
        self._number += ends
        self._ended = block.endswith(b"\n")
        hits = self._memory.news(reduced)
        if hits and self._spent <= BUDGET:
            yield from self._telling(block.split(b"\n")[: ends if self._ended else None], hits, number)
            return
        if hits:
            # The budget is spent: only the last blocks are still read, at the end.
            if len(self._late) == _LATE_BLOCKS:
                self.skipped += self._late[0][1].count(b"\n")
            self._late.append((number + max(block.count(b"\n") + 1 - _LATE_LINES, 0), block))
            return
        if self._wants:
            self._keep(block.split(b"\n", self._wants)[: min(self._wants, ends)], number)
            yield from self._close()
        self._quiet = (block, self._number)

    def _telling(self, lines: Sequence[bytes], hits: Sequence[int], number: int) -> Iterator[list[Numbered]]:
        """The segments of a block that has a telling word."""
        spans = self._spans(hits)
        if self._open and (not spans or spans[0][0] > 0):
            spans.insert(0, (0, self._wants))
        for first, after in spans:
            if first > 0 or not self._open:
                yield from self._close()
            for start in range(first, min(after, len(lines)), LONGEST):
                yield from self._close(longer_than=LONGEST)
                part = lines[start : min(start + LONGEST, after)]
                self._spent += len(part)
                self._keep(part, number + start)
            self._wants = after - len(lines)
            if self._wants <= 0:
                yield from self._close()
        self._tail = list(enumerate(lines[-BEFORE:], number + max(len(lines) - BEFORE, 0)))
        self._quiet = None

    def _keep(self, lines: Sequence[bytes], number: int) -> None:
        """Add lines to the open segment; of a very long one, the telling parts."""
        short = (line if len(line) <= LONG_LINE else b"\r".join(line_pieces(line)) for line in lines)
        self._open.extend(enumerate(short, number))

    def _spans(self, hits: Sequence[int]) -> list[tuple[int, int]]:
        """Start and end of the lines around the hits, joined with the tail of the block before."""
        spans: list[tuple[int, int]] = []
        for hit in hits:
            first, after = max(hit - BEFORE, 0), hit + AFTER + 1
            if spans and first <= spans[-1][1]:
                spans[-1] = (spans[-1][0], after)
            else:
                spans.append((first, after))
        if self._open:
            if spans and spans[0][0] <= self._wants:
                spans[0] = (0, max(spans[0][1], self._wants))
        elif hits and hits[0] < BEFORE:
            # The last lines of a quiet block, with their numbers.
            if self._quiet is not None:
                block, number = self._quiet
                last = block.rsplit(b"\n", BEFORE + 1)[1:] if b"\n" in block else [block]
                self._tail = list(enumerate(last, number - len(last) + 1))
                self._quiet = None
            self._open = self._tail[max(len(self._tail) - (BEFORE - hits[0]), 0) :]
        return spans

    def _close(self, *, longer_than: int = 0) -> Iterator[list[Numbered]]:
        if len(self._open) > longer_than:
            yield self._open
            self._open = []
            self._wants = 0


def _at_line_ends(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """``blocks`` cut where lines end; a line longer than ``_PATIENCE`` bytes comes in parts."""
    held: list[bytes] = []
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        held.append(block[:cut] if cut else block)
        if cut or sum(map(len, held)) >= _PATIENCE:
            # Joining copies little: a single block is not copied.
            yield b"".join(held)
            held = [block[cut:]] if 0 < cut < len(block) else []
    if held:
        yield b"".join(held)
