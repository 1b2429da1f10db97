"""A package that is read where it lies: only the parts that somebody asks for come over the network, each once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from aotidoctor.readers.package.blob import Blob
from aotidoctor.remote.files import RemoteFile

BLOCK = 8 << 10
# What is read is mostly followed by more of it.
_AHEAD = 4
# Ranges that are asked for together; more of them would be many connections.
_TOGETHER = 64


@dataclass(slots=True)
class Ranges:
    """The blocks of ``file`` that came so far. ``bytes_read`` counts what came over the network."""

    file: RemoteFile
    size: int
    bytes_read: int = 0
    requests: int = 0
    _blocks: dict[int, bytes] = field(default_factory=dict)

    def blob(self) -> Blob:
        """For the readers of packages. Its reads raise RemoteError."""
        return Blob(self.size, self.read_at, self.prefetch)

    def read_at(self, start: int, length: int) -> bytes:
        """At most ``length`` bytes, fewer past the end."""
        end = min(start + length, self.size)
        if start < 0 or end <= start:
            return b""
        first, last = start // BLOCK, (end - 1) // BLOCK
        if any(at not in self._blocks for at in range(first, last + 1)):
            self._fetch(range(first, min(max(last + 1, first + _AHEAD), -(-self.size // BLOCK))))
        data = b"".join(self._blocks[at] for at in range(first, last + 1))
        return data[start - first * BLOCK : end - first * BLOCK]

    def prefetch(self, wanted: Sequence[tuple[int, int]]) -> None:
        """Get several parts at once."""
        blocks: set[int] = set()
        for start, length in wanted:
            end = min(start + length, self.size)
            if 0 <= start < end:
                blocks.update(range(start // BLOCK, (end - 1) // BLOCK + 1))
        self._fetch(sorted(blocks))

    def _fetch(self, blocks: Sequence[int]) -> None:
        """Get those of ``blocks``, ascending, that are not here; neighbours in one piece."""
        runs = list(_runs([at for at in blocks if at not in self._blocks]))
        for group in (runs[at : at + _TOGETHER] for at in range(0, len(runs), _TOGETHER)):
            found = self.file.read_ranges([(first * BLOCK, min(after * BLOCK, self.size)) for first, after in group])
            self.requests += len(group)
            for (first, after), data in zip(group, found, strict=True):
                self.bytes_read += len(data)
                for number, at in enumerate(range(first, after)):
                    self._blocks[at] = data[number * BLOCK : (number + 1) * BLOCK]


def _runs(blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and one past the last of each run of neighbours."""
    first = 0
    for at in range(1, len(blocks) + 1):
        if at == len(blocks) or blocks[at] != blocks[at - 1] + 1:
            yield blocks[first], blocks[at - 1] + 1
            first = at
