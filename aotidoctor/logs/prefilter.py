"""From blocks to the few lines that matter: those with a telling word, and their surroundings.

Looking for words in a whole block is fast, looking at lines is not. So a block without a telling word costs no more
than a search; one with such a word is cut into lines; and of lines that have the same letters, the first alone
is looked at closely and the others are counted. A log of a million repeated errors is then as cheap as one of noise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from aotidoctor.logs.keyword_filter import KeywordFilter, letters
from aotidoctor.logs.lines import pieces
from aotidoctor.logs.memory import Memory

BEFORE, AFTER = 40, 80
# A log up to this size is read line by line.
SMALL = 1 << 18
# What is longer is read in parts.
LONGEST = 4000
# A line longer than this is not waited for; one longer than that is cut.
_PATIENCE, LONG_LINE = 1 << 20, 1 << 15
# Lines looked at closely, beyond which only the end of the log still is.
BUDGET = 30_000
_LATE_BLOCKS, _LATE_LINES = 4, 2000

Numbered = tuple[int, bytes]


class Prefilter:
    """Feed it blocks; it gives segments of numbered lines. ``is_small``: they are the whole log."""

    def __init__(self, keywords: KeywordFilter) -> None:
        self._memory = Memory(keywords)
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
            yield from self._whole(first)
            return
        for block in _at_line_ends(chain((first, second), blocks)):
            yield from self._block(block)
        for number, block in self._late:
            lines = block.rsplit(b"\n", _LATE_LINES)[-_LATE_LINES:]
            yield from self._telling(lines, range(0, len(lines), AFTER), number)
        yield from self._close()

    def _whole(self, text: bytes) -> Iterator[list[Numbered]]:
        """A log so small that every line of it can be looked at, with or without a telling word."""
        self.is_small = True
        lines = text.split(b"\n")
        self._ended = not lines[-1]
        self._number += len(lines) - 1
        if self._ended:
            lines.pop()
        for start in range(0, len(lines), LONGEST):
            yield list(enumerate(lines[start : start + LONGEST], start + 1))

    def _block(self, block: bytes) -> Iterator[list[Numbered]]:
        reduced = letters(block)
        # There is less of it to count them in.
        number, ends = self._number, reduced.count(b"\n")
        self._number += ends
        self._ended = block.endswith(b"\n")
        hits = self._memory.news(reduced)
        if hits and self._spent <= BUDGET:
            yield from self._telling(block.split(b"\n")[: ends if self._ended else None], hits, number)
            return
        if hits:
            self._put_off(block, number)
            return
        if self._wants:
            self._keep(block.split(b"\n", self._wants)[: min(self._wants, ends)], number)
            yield from self._close()
        self._quiet = (block, self._number)

    def _put_off(self, block: bytes, number: int) -> None:
        """Enough was looked at: only the last blocks still are, at the end."""
        if len(self._late) == _LATE_BLOCKS:
            self.skipped += self._late[0][1].count(b"\n")
        self._late.append((number + max(block.count(b"\n") + 1 - _LATE_LINES, 0), block))

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

    def _recall(self) -> None:
        """The last lines of a quiet block, with their numbers."""
        if self._quiet is not None:
            block, number = self._quiet
            last = block.rsplit(b"\n", BEFORE + 1)[1:] if b"\n" in block else [block]
            self._tail = list(enumerate(last, number - len(last) + 1))
            self._quiet = None

    def _keep(self, lines: Sequence[bytes], number: int) -> None:
        """Of a line without end, what is telling."""
        short = (line if len(line) <= LONG_LINE else b"\r".join(pieces(line)) for line in lines)
        self._open.extend(enumerate(short, number))

    def _spans(self, hits: Sequence[int]) -> list[tuple[int, int]]:
        """First line and the one after the last of what surrounds the hits; the tail of the block before joins in."""
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
            self._recall()
            self._open = self._tail[max(len(self._tail) - (BEFORE - hits[0]), 0) :]
        return spans

    def _close(self, *, longer_than: int = 0) -> Iterator[list[Numbered]]:
        if len(self._open) > longer_than:
            yield self._open
            self._open = []
            self._wants = 0


def _at_line_ends(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """``blocks`` cut where lines end. Of a line that is too long to be waited for the parts."""
    held: list[bytes] = []
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        held.append(block[:cut] if cut else block)
        if cut or sum(map(len, held)) >= _PATIENCE:
            # What is held is little; a block that is alone is not copied.
            yield b"".join(held)
            held = [block[cut:]] if 0 < cut < len(block) else []
    if held:
        yield b"".join(held)
