"""Walk a flatbuffer of a stranger: every offset, vector and depth is checked before it is followed.

Offsets go forward only, so no walk comes back to where it was; a budget of reads bounds what a file of many references
to the same table costs. Nothing is read that is not asked for: pages of 64 KiB, of which only so many are kept.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

_PAGE = 1 << 16
_MOST_PAGES = 512
_MOST_READS = 1_500_000
MOST_ITEMS = 200_000
_MOST_TEXT = 1024


class FlatbufferError(ValueError):
    """The bytes are not the flatbuffer that was expected; the text says where."""


class FlatBuffer:
    """``size`` bytes of a file from ``start`` on. Every read raises FlatbufferError outside of them."""

    def __init__(self, read_at: Callable[[int, int], bytes], start: int, size: int) -> None:
        self._read_at, self._start, self.size = read_at, start, size
        self._pages: dict[int, bytes] = {}
        self._reads = 0

    def data(self, at: int, length: int) -> bytes:
        """``length`` bytes at ``at``."""
        self._reads += 1 + length // 64
        if self._reads > _MOST_READS:
            raise FlatbufferError("more references than a program has")
        if at < 0 or length < 0 or at + length > self.size:
            raise FlatbufferError(f"offset {at:,} + {length:,} leads beyond the {self.size:,} bytes of the flatbuffer")
        number, inside = divmod(at, _PAGE)
        if inside + length <= _PAGE:
            found = self._page(number)[inside : inside + length]
        else:
            found = self._read_at(self._start + at, length)
        if len(found) < length:
            raise FlatbufferError(f"the file ends before offset {at + length:,} of the flatbuffer")
        return found

    def number(self, at: int, code: str) -> int:
        """The integer at ``at``; ``code`` as in ``struct``."""
        return int(struct.unpack("<" + code, self.data(at, struct.calcsize("<" + code)))[0])

    def follow(self, at: int) -> int:
        """Target of the offset at ``at``, which is forward."""
        step = self.number(at, "I")
        if step < 4:
            raise FlatbufferError(f"the offset at {at:,} leads nowhere")
        return at + step

    def _page(self, number: int) -> bytes:
        page = self._pages.get(number)
        if page is None:
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            at = number * _PAGE
            page = self._pages[number] = self._read_at(self._start + at, min(_PAGE, self.size - at))
        return page


class Table:
    """A table at ``at``: fields by their number in the schema."""

    def __init__(self, buffer: FlatBuffer, at: int) -> None:
        self.buffer, self.at = buffer, at
        vtable = at - buffer.number(at, "i")
        length = buffer.number(vtable, "H")
        if length < 4 or length % 2:
            raise FlatbufferError(f"the table at {at:,} has a vtable of {length} bytes")
        self._fields = struct.unpack(f"<{length // 2 - 2}H", buffer.data(vtable, length)[4:])

    def field(self, index: int) -> int | None:
        """Place of the field, None where the table has none."""
        inside = self._fields[index] if index < len(self._fields) else 0
        return self.at + inside if inside else None

    def number(self, index: int, code: str, default: int = 0) -> int:
        """An integer."""
        at = self.field(index)
        return default if at is None else self.buffer.number(at, code)

    def table(self, index: int) -> Table | None:
        """A table, None where there is none."""
        at = self.field(index)
        return None if at is None else Table(self.buffer, self.buffer.follow(at))

    def tables(self, index: int) -> Iterator[Table]:
        """The tables of a vector."""
        start, count = self.vector(index, 4)
        for item in range(count):
            yield Table(self.buffer, self.buffer.follow(start + 4 * item))

    def vector(self, index: int, item_size: int) -> tuple[int, int]:
        """Place and number of the items; none where there is no vector."""
        at = self.field(index)
        if at is None:
            return 0, 0
        place = self.buffer.follow(at)
        count = self.buffer.number(place, "I")
        if count * item_size > self.buffer.size - place - 4:
            raise FlatbufferError(f"the vector of {count:,} items at {place:,} leads beyond the flatbuffer")
        return place + 4, count

    def numbers(self, index: int, code: str, most: int) -> tuple[int, ...]:
        """The integers of a vector of at most ``most``."""
        size = struct.calcsize("<" + code)
        start, count = self.vector(index, size)
        if count > most:
            raise FlatbufferError(f"a vector of {count:,} integers, where at most {most:,} are read")
        return struct.unpack(f"<{count}{code}", self.buffer.data(start, count * size)) if count else ()

    def text(self, index: int) -> str:
        """A string or a vector of bytes as text, cut to 1,024 bytes."""
        start, count = self.vector(index, 1)
        return self.buffer.data(start, min(count, _MOST_TEXT)).decode("utf-8", "replace") if count else ""
