"""What child runs wrote, in full up to a limit: the report keeps the last 16 KiB only."""

from __future__ import annotations

import re
from pathlib import Path

HEAD, TAIL = 256 << 10, 768 << 10
# All runs together: a ladder of runs that all flood must not fill the memory.
TOTAL = 32 << 20
_STREAMS = ("stdout", "stderr", "tool.log")
_HOLE = re.compile(rb"\0{64,}")


class Outputs:
    """Copies streams out of the directories of runs before these are removed."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._left = TOTAL

    def keep(self, run: str, directory: Path) -> None:
        """Copy the streams of one run; one that cannot be read is left out, as the report has its tail."""
        for stream in _STREAMS:
            try:
                written, _ = _ends(directory / stream, HEAD, TAIL)
            except OSError:
                continue
            # A flood's beginning is given back to the file system and reads as zeros.
            data = _HOLE.sub(b"\n[... given back to the file system ...]\n", written)
            if data and len(data) <= self._left:
                self._left -= len(data)
                self.texts[f"{run}.{stream}"] = decoded(data)


def read_log(path: Path, limit: int = HEAD + TAIL) -> tuple[str, int]:
    """The text of a log, its middle left out where it is longer than ``limit``; and its size. Raises OSError."""
    data, size = _ends(path, limit // 4, limit - limit // 4)
    return decoded(data), size


def decoded(data: bytes) -> str:
    """Text of bytes: UTF-16 where the bytes say so, UTF-8 else. A word in UTF-16 would hide from redaction."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    sample = data[:4096]
    if len(sample) > 8 and sample.count(0) * 5 > len(sample) * 2:
        even = sample[::2].count(0) > sample[1::2].count(0)
        return data.decode("utf-16-be" if even else "utf-16-le", "replace")
    return data.decode("utf-8", "replace")


def _ends(path: Path, head: int, tail: int) -> tuple[bytes, int]:
    """The bytes of a file, its middle left out where it is longer than both; and its size."""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        if size <= head + tail:
            return stream.read(head + tail), size
        data = stream.read(head) + f"\n[... {size - head - tail} bytes left out ...]\n".encode()
        stream.seek(size - tail)
        return data + stream.read(tail), size
