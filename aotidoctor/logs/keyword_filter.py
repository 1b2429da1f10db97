"""The telling words: what a line of a failure has, in whatever form it is told; and a fast way to look for all of them.

Python has no search for many words at once, and an alternation of them tries each at every character. Here the text
is first reduced to its letters in lower case, and each word to a part of it that begins with a letter that is rare in
English. The alternation of those parts, as a tree, then has to look at every seventh character only, however many
words there are. What it finds is a hint, and the lines decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from aotidoctor.logs.patterns import Pattern

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


def squeezed(reduced: bytes) -> bytes:
    """A part of a line without end, without its long runs of a rare letter: a search would look at each of them."""
    head = reduced[:_HEAD]
    for letter in _RARE.encode():
        run = bytes([letter]) * _RUN
        if head.count(run) * _RUN > _HEAD // 4:
            reduced = reduced.replace(run, run[:1])
    return reduced


class KeywordFilter:
    """Looks for words."""

    def __init__(self, words: Iterable[str]) -> None:
        parts = _parts_of(words)
        shortest = [part for part in parts if not any(inner in parts for inner in _inside(part))]
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
        """Those of ``lines``, which are reduced to letters, that have one of the words."""
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


def _inside(part: str) -> Iterator[str]:
    """The shorter words in ``part``."""
    ends = range(_LEAST, len(part) + 1)
    return (part[at:end] for end in ends for at in range(end - _LEAST + 1) if end - at < len(part))


def _any_of(parts: list[bytes]) -> re.Pattern[bytes]:
    """Without any part it never matches."""
    return re.compile(b"|".join(parts) if parts else rb"(?!)")


def known_words(patterns: Iterable[Pattern]) -> list[str]:
    """What matches of the patterns must have: one of these."""
    return [literal for pattern in patterns for literal in pattern.literals]


def telling_words(patterns: Iterable[Pattern]) -> list[str]:
    """The broad words, and for messages that come without one those that the patterns must have.

    How a message comes, its example shows. Everyday words are left out: they would tell of every line; and so are those
    without a rare letter to begin with: each would cost a search of its own.
    """
    broad = [part.encode() for part in _parts_of(BROAD)]
    examples = ((pattern, letters(pattern.record.example.encode())) for pattern in patterns)
    own = [pattern for pattern, said in examples if not any(part in said for part in broad)]
    return [*BROAD, *(word for word in known_words(own) if _is_cheap(letters(word.encode()).decode()))]


def _is_cheap(word: str) -> bool:
    return len(word) >= _RARE_ENOUGH and _part(word)[0] in _RARE


def _part(word: str) -> str:
    """The part of ``word`` to look for; empty where it is too short to tell anything."""
    if len(word) < _LEAST:
        return ""
    starts = range(max(len(word) - _MOST + 1, min(len(word) - _LEAST, 2) + 1))
    best = min(starts, key=lambda at: _rank(word[at]))
    return word[best : best + _MOST]


def _rank(letter: str) -> int:
    at = _RARE.find(letter)
    return at if at >= 0 else len(_RARE)


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
