"""The beginning and the end of what passes through, in bounded memory."""

from __future__ import annotations

from collections import deque

# First errors stand at the beginning of the trouble, last words at the end; between them lies what a server logs.
HEAD = TAIL = 4 * 1024 * 1024


class Kept:
    """Takes bytes; keeps the first ``head`` and the last ``tail`` of them."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self.size = 0
        self._room = head
        self._limit = tail
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._held = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.size += len(data)
        if self._room:
            part = data[: self._room]
            self._head.append(part)
            self._room -= len(part)
            data = data[len(part) :]
        if data:
            self._tail.append(data)
            self._held += len(data)
            while self._held - len(self._tail[0]) >= self._limit:
                self._held -= len(self._tail.popleft())

    @property
    def head(self) -> bytes:
        """The first bytes."""
        return b"".join(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes, as far as they are not in the head."""
        return b"".join(self._tail)[-self._limit :] if self._tail else b""
