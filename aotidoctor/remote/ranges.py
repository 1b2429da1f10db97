"""A package that is read where it lies: only the parts that somebody asks for come over the network, each once."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field

from aotidoctor.readers.package.blob import Blob
from aotidoctor.remote.files import RemoteFile

# What is read is mostly followed by more of it.
_AHEAD = 32 << 10
# Ranges that are asked for together; more of them would be many connections.
_TOGETHER = 64


@dataclass(slots=True)
class Ranges:
    """The parts of ``file`` that came so far. ``bytes_read`` counts what came over the network."""

    file: RemoteFile
    size: int
    bytes_read: int = 0
    requests: int = 0
    _starts: list[int] = field(default_factory=list)
    _parts: list[bytes] = field(default_factory=list)

    def blob(self) -> Blob:
        """For the readers of packages. Its reads raise RemoteError."""
        return Blob(self.size, self.read_at, self.prefetch)

    def read_at(self, start: int, length: int) -> bytes:
        """At most ``length`` bytes, fewer past the end."""
        end = min(start + length, self.size)
        if start < 0 or end <= start:
            return b""
        found = self._known(start, end)
        if found is not None:
            return found
        data = self._fetch([(start, min(self.size, max(end, start + _AHEAD)))])[0]
        return data[: end - start]

    def prefetch(self, wanted: Sequence[tuple[int, int]]) -> None:
        """Get several parts at once; those that lie close together in one piece."""
        merged: list[tuple[int, int]] = []
        for start, length in sorted(wanted):
            end = min(start + length, self.size)
            if not 0 <= start < end or self._known(start, end) is not None:
                continue
            if merged and start - merged[-1][1] <= _AHEAD:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        for at in range(0, len(merged), _TOGETHER):
            self._fetch(merged[at : at + _TOGETHER])

    def _known(self, start: int, end: int) -> bytes | None:
        at = bisect.bisect_right(self._starts, start) - 1
        # The part that begins latest may be a short one inside a longer one before it.
        for place in range(at, max(-1, at - 4), -1):
            first, part = self._starts[place], self._parts[place]
            if end <= first + len(part):
                return part[start - first : end - first]
        return None

    def _fetch(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        found = self.file.read_ranges(ranges)
        self.requests += len(ranges)
        for (start, _), data in zip(ranges, found, strict=True):
            self.bytes_read += len(data)
            place = bisect.bisect_left(self._starts, start)
            self._starts.insert(place, start)
            self._parts.insert(place, data)
        return found
