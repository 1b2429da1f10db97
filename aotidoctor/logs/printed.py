"""Who prints a message: the file of torch or Triton whose words it has, where a log has no stack.

Messages of torch 2.13 and of a Triton of that time were taken from their sources (``scripts/printed.py``). Of each the
table ``printed.bin`` has the numbers of its words, five in a row, that no other package prints; what lies between the
holes of a message is the same for everybody who pastes it. It is read when nothing else names a cause.
"""

from __future__ import annotations

import re
import sys
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

TABLE = Path(__file__).with_name("printed.bin")
_WORD = re.compile(r"[A-Za-z_][\w.]*")
_RUN = 5
# So many lines of a message, and words of a line, are looked up.
_LINES, _WORDS = 12, 200
_ORDER = sys.byteorder


def runs(text: str) -> list[int]:
    """The number of each run of words in a line, in order."""
    words = [word.strip("._").lower() for word in _WORD.findall(text)[:_WORDS]]
    return [zlib.crc32(" ".join(words[at : at + _RUN]).encode()) for at in range(len(words) - _RUN + 1)]


def packed(places: Mapping[int, str]) -> bytes:
    """A table of numbers and places: the names, then the numbers in order, then the place of each."""
    names = sorted(set(places.values()))
    number = {name: at for at, name in enumerate(names)}
    keys = sorted(places)
    head = "\n".join(names).encode()
    head += b"\n" * (4 - (len(head) + 8) % 4)
    sizes = len(head).to_bytes(4, "little") + len(keys).to_bytes(4, "little")
    body = b"".join(key.to_bytes(4, "little") for key in keys)
    return sizes + head + body + b"".join(number[places[key]].to_bytes(2, "little") for key in keys)


@dataclass(frozen=True)
class Printed:
    """The table."""

    names: Sequence[str]
    keys: Sequence[int]
    places: Sequence[int]

    def place(self, key: int) -> str:
        """The file that has this run of words; empty where none is known."""
        at = bisect_left(self.keys, key)
        return self.names[self.places[at]] if at < len(self.keys) and self.keys[at] == key else ""


@lru_cache(maxsize=1)
def _table() -> Printed:
    from array import array  # noqa: PLC0415 - of most logs nobody asks

    raw = TABLE.read_bytes()
    head, count = (int.from_bytes(raw[at : at + 4], "little") for at in (0, 4))
    start = 8 + head
    keys, places = array("I"), array("H")
    keys.frombytes(raw[start : start + 4 * count])
    places.frombytes(raw[start + 4 * count : start + 6 * count])
    if _ORDER == "big":
        keys.byteswap()
        places.byteswap()
    return Printed(names=raw[8:start].decode().strip().split("\n"), keys=keys, places=places)


def printed_by(text: str) -> str:
    """The place that prints most of the words of a message; empty where nobody known does."""
    known = _table()
    found = Counter(
        place for line in text.split("\n", _LINES)[:_LINES] for key in runs(line) if (place := known.place(key))
    )
    return max(found, key=lambda place: (found[place], place)) if found else ""
