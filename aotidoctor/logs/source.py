"""A stream of bytes as blocks of UTF-8 or something like it, whatever it was: UTF-16, gzip, text of unknown bytes."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

# The first one tells whether a log is small; the others fit the cache that is nearest to the processor.
BLOCK, _HEAD, _NEXT = 1 << 18, 1 << 16, 1 << 16
_GZIP = b"\x1f\x8b\x08"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Source:
    """Counts what it reads. ``problems`` says what kept it from reading all; ``head`` is how the text begins."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size = 0
        self.head = b""
        self.problems: list[str] = []

    def blocks(self) -> Iterator[bytes]:
        """Blocks that fit a cache, cut anywhere."""
        for block in self._blocks():
            self.head = self.head or block[:_HEAD]
            yield block

    def _blocks(self) -> Iterator[bytes]:
        raw = self._read()
        first = next(raw, b"")
        if first.startswith(_GZIP):
            raw = self._unpacked(first, raw)
            first = next(raw, b"")
        encoding = _encoding(first)
        if encoding == "utf-8":
            yield first.removeprefix(codecs.BOM_UTF8)
            yield from raw
        else:
            yield from self._decoded(encoding, first, raw)

    def _read(self) -> Iterator[bytes]:
        while True:
            try:
                block = self._stream.read(_NEXT if self.size else BLOCK)
            except OSError as error:
                self.problems.append(f"reading ended early: {error.strerror or error}")
                return
            if not block:
                return
            self.size += len(block)
            yield block

    def _unpacked(self, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        unpack = zlib.decompressobj(31)
        try:
            for block in chain((first,), rest):
                left = block
                while left:
                    yield unpack.decompress(left, BLOCK)
                    left = unpack.unconsumed_tail
            if not unpack.eof:
                self.problems.append("the gzip data end early")
        except zlib.error as error:
            self.problems.append(f"the gzip data are damaged: {error}")

    def _decoded(self, encoding: str, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        for block in chain((first,), rest):
            yield decoder.decode(block).encode("utf-8", "replace")
        yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _encoding(first: bytes) -> str:
    """By the byte order mark; without one, text with a zero in every other byte is UTF-16."""
    for mark, name in _BOMS:
        if first.startswith(mark):
            return name
    head = first[:4096]
    half = len(head) // 2
    if half > 8 and head.count(0) <= half + 1:
        if head[1::2].count(0) > 0.8 * half:
            return "utf-16-le"
        if head[::2].count(0) > 0.8 * half:
            return "utf-16-be"
    return "utf-8"
