"""What rich shall know of a stream, without writing to it.

rich writes to its file even what it captures (an empty string, at the end), and a full disk answers that with an error.
"""

from __future__ import annotations

import contextlib
from typing import IO, TextIO, cast, final


def looks_of(stream: TextIO) -> IO[str]:
    """A file with the encoding, the width and the terminal of ``stream``, which takes everything and keeps nothing."""
    return cast("IO[str]", _Looks(stream))


@final
class _Looks:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        with contextlib.suppress(ValueError, OSError):
            return self._stream.isatty()
        return False

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        return
