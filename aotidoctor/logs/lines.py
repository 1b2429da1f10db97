"""Bytes of a log as lines: decoded, without control characters, wrappers and prefixes, put into streams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from aotidoctor.logs.line import Line
from aotidoctor.logs.prefixes import Bare, bare, unwrapped
from aotidoctor.logs.spelling import plain

# Of a longer line only the surroundings of its telling words are read.
LONGEST = 8192
_PIECES, _AROUND = 8, 1500
_BEHIND = re.compile(
    r"(?<=[\w\])])(?:\[(?:rank|default)\d+\]:|\([\w.]{1,60} (?:[\w.=-]{1,60} )?pid=\d+\)) ?(?=\S)"
    r"|(?<=(?:it/s|s/it)\])(?=(?:Killed|Aborted|Segmentation fault|Bus error|Traceback|[\w.]{1,80}Error: ))"
)
_TELLING = re.compile(rb"rror|xception|raceback|ailed|erminat|bort|fault|ssert|illed|llegal|ndefined|annot|issing")
_CONTROL = re.compile(r"[\x00-\x06\x08\x0b-\x1a\x1c-\x1f\x7f\ufeff\ufffe]")


def clean(numbered: Iterable[tuple[int, bytes]], state: Streams) -> Iterator[Line]:
    """Lines with their origins; ``state`` remembers whose the unmarked ones are."""
    for number, raw in numbered:
        for piece in pieces(raw):
            for text in (part for whole in unwrapped(plain(decoded(piece))) for part in _apart(whole)):
                line = bare(text)
                if line.text.startswith("{") and line.text is not text:
                    for inner in unwrapped(line.text):
                        yield state.placed(number, bare(inner), raw, outer=line.ranks)
                else:
                    yield state.placed(number, line, raw)


def _apart(text: str) -> list[str]:
    """``text``, cut where another process began to write behind a bar of progress that had no end of line."""
    found = _BEHIND.search(text) if "%|" in text else None
    return [text] if found is None else [text[: found.start()], text[found.start() :]]


def decoded(raw: bytes) -> str:
    """As UTF-8, else as Latin-1, which any bytes are. Without control characters but tabs and those of colours."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return _CONTROL.sub("", text) if not text.isprintable() else text


def pieces(raw: bytes) -> list[bytes]:
    """What a terminal would have shown one over the other, and the telling parts of a line without end."""
    parts = [part for part in raw.rstrip(b"\r").split(b"\r") if part] if b"\r" in raw else [raw]
    if len(parts) > 2 * _PIECES:
        telling = [part for part in parts[:-1] if _TELLING.search(part)]
        parts = [*telling[: 8 * _PIECES], parts[-1]]
    return [short for part in parts for short in ([part] if len(part) <= LONGEST else _parts(part))]


def _parts(raw: bytes) -> list[bytes]:
    found: list[bytes] = []
    end = -1
    for hit in _TELLING.finditer(raw):
        if hit.start() < end:
            continue
        end = hit.start() + _AROUND
        found.append(raw[max(hit.start() - _AROUND // 4, 0) : end])
        if len(found) == _PIECES:
            break
    return found


class Streams:
    """Puts lines into streams. A line without a mark continues the stream that spoke last in its process."""

    def __init__(self) -> None:
        self._threads: dict[str, str] = {}
        self.origins: dict[str, None] = {}

    def placed(self, number: int, line: Bare, raw: bytes, outer: tuple[str, ...] = ()) -> Line:
        """The line with its origin and stream; ``outer`` are the names of what it was wrapped in."""
        origin = " ".join((*outer, *line.ranks))
        if origin:
            self.origins.setdefault(origin)
        if line.thread:
            self._threads[origin] = line.thread
        stream = f"{origin}/{self._threads.get(origin, '')}"
        return Line(number, line.text.rstrip(), origin, stream, line.level, line.stamped, raw)
