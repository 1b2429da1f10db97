"""What a log has said before: of lines with the same letters the first is news, the others are counted."""

from __future__ import annotations

from collections import Counter

from aotidoctor.logs.keyword_filter import KeywordFilter, letters, squeezed

# Lines remembered: those of everyday, and the telling ones. A longer line is news each time.
_PLAIN, _TELLING, _LONGEST = 20_000, 100_000, 2_000
# The share of new lines above which it is not worth the effort to remember them, and for how many blocks.
_NEW, _REST = 0.3, 120
# Of so few lines each is counted by itself.
_FEW = 8


class Memory:
    """Remembers lines by their letters."""

    def __init__(self, keywords: KeywordFilter) -> None:
        self._keywords = keywords
        self._plain: set[bytes] = set()
        self._counts: dict[bytes, int] = {}
        self._rest = 0

    def count(self, raw: bytes) -> int:
        """How often a telling line with these letters was there."""
        return self._counts.get(letters(raw), 0)

    def news(self, reduced: bytes) -> list[int]:
        """The telling lines of a block that are unlike all before, by their places; ``reduced`` are its letters."""
        if b"\n" not in reduced:
            reduced = squeezed(reduced)
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
        self._counted(keys, known | new)
        return _first_places(keys, new)

    def _counted(self, keys: list[bytes], telling: set[bytes]) -> None:
        every = Counter(keys) if len(telling) > _FEW else None
        for key in telling:
            if key in self._counts or (len(self._counts) < _TELLING and len(key) <= _LONGEST):
                times = keys.count(key) if every is None else every[key]
                self._counts[key] = self._counts.get(key, 0) + times


def _first_places(keys: list[bytes], wanted: set[bytes]) -> list[int]:
    found: list[int] = []
    left = set(wanted)
    for at, key in enumerate(keys) if left else ():
        if key in left:
            left.discard(key)
            found.append(at)
    return found
