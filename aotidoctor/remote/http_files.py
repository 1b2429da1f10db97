"""Read a file at an HTTP address. What a server sends is bounded by us: its bytes, its time and its encoding.

One request for the first byte gives size and version, and shows whether parts of the file can be had. An answer is read
as far as it was asked for, and never unpacked.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aotidoctor.model.record import record

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from fsspec.implementations.http import HTTPFileSystem

WAIT_S = 60.0
"""Seconds for a connection and the head of an answer, and between two pieces of its body."""
SLOWEST = 64 << 10
"""Bytes per second that a body has to come at, on average, after ``WAIT_S``."""
_PIECE = 1 << 20
_MOST_REDIRECTS = 5
_PART = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.ASCII)
# Answers of servers that serve no part, or no part of an empty file.
_WITHOUT_PARTS = (400, 405, 416, 501)
_VERSIONS = ("ETag", "Last-Modified", "Content-MD5")


class AnswerError(Exception):
    """An answer is no answer to the request."""


@record
class HttpFile:
    """A file at an address. ``size`` is None if it is unknown, ``version`` if nothing tells two contents apart."""

    url: str
    size: int | None
    version: str | None
    has_ranges: bool
    _system: HTTPFileSystem

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of each range, at once. Raises what aiohttp raises, and AnswerError."""
        from fsspec.asyn import sync

        found: list[bytes] = sync(self._system.loop, _parts, self._system, self.url, ranges)
        return found

    def pieces(self) -> Iterator[bytes]:
        """The whole file in pieces. Raises what aiohttp raises, and AnswerError."""
        from fsspec.asyn import sync

        loop, began, total = self._system.loop, time.monotonic(), 0
        answer: ClientResponse = sync(loop, _begin, self._system, self.url, None)
        try:
            while data := sync(loop, answer.content.read, _PIECE, timeout=WAIT_S):
                total += len(data)
                if time.monotonic() - began > WAIT_S + total / SLOWEST:
                    raise AnswerError(f"{total:,} bytes came in {time.monotonic() - began:.0f} s: it is too slow")
                yield data
        finally:
            loop.call_soon_threadsafe(answer.close)


def open_http(url: str) -> HttpFile:
    """Ask for the first byte of the file. Raises what aiohttp raises, and AnswerError."""
    from fsspec.asyn import sync
    from fsspec.implementations.http import HTTPFileSystem

    system = HTTPFileSystem(
        client_kwargs={"auto_decompress": False, "headers": {"Accept-Encoding": "identity"}, "read_bufsize": _PIECE}
    )
    found: HttpFile = sync(system.loop, _describe, system, url)
    return found


async def _describe(system: HTTPFileSystem, url: str) -> HttpFile:
    async with _answer(system, url, (0, 1)) as answer:
        if answer.status not in _WITHOUT_PARTS:
            return _file(system, url, answer)
    async with _answer(system, url, None) as answer:
        return _file(system, url, answer)


def _file(system: HTTPFileSystem, url: str, answer: ClientResponse) -> HttpFile:
    answer.raise_for_status()
    part = _part_of(answer)
    if answer.status == 206:
        size = int(part[3]) if part is not None and part[3] != "*" else None
    else:
        size = answer.content_length
    packed = _encoding(answer) is not None
    parts = [f"{name}={answer.headers[name][:200]}" for name in _VERSIONS if name in answer.headers]
    return HttpFile(
        url=url,
        size=None if packed else size,
        version=";".join([str(size), *parts]) if parts else None,
        has_ranges=part is not None and size is not None and not packed,
        _system=system,
    )


def _part_of(answer: ClientResponse) -> re.Match[str] | None:
    """First byte, last byte and size of the file, where the answer is a part of it."""
    return _PART.fullmatch(answer.headers.get("Content-Range", "")) if answer.status == 206 else None


def _encoding(answer: ClientResponse) -> str | None:
    """How the body is packed; None if it is not."""
    name = answer.headers.get("Content-Encoding", "").strip().lower()
    return name[:40] if name not in ("", "identity") else None


def _refuse_packed(answer: ClientResponse) -> None:
    answer.raise_for_status()
    if (packed := _encoding(answer)) is not None:
        raise AnswerError(f"the server sends it packed ({packed}): fetch and unpack it, and give the file")


async def _begin(system: HTTPFileSystem, url: str, part: tuple[int, int] | None) -> ClientResponse:
    """The answer to a request for the bytes from start to end, with its body to come."""
    import asyncio

    from aiohttp import ClientTimeout

    session = await system.set_session()
    headers = {"Range": f"bytes={part[0]}-{part[1] - 1}"} if part is not None else {}
    # The time of the body is for the caller to bound.
    timeout = ClientTimeout(total=None, sock_connect=WAIT_S, sock_read=WAIT_S)
    ask = session.get(
        system.encode_url(url), headers=headers, timeout=timeout, max_redirects=_MOST_REDIRECTS, allow_redirects=True
    )
    answer: ClientResponse = await asyncio.wait_for(ask, WAIT_S)
    if part is None:
        try:
            _refuse_packed(answer)
        except BaseException:
            answer.close()
            raise
    return answer


@asynccontextmanager
async def _answer(system: HTTPFileSystem, url: str, part: tuple[int, int] | None) -> AsyncIterator[ClientResponse]:
    answer = await _begin(system, url, part)
    try:
        yield answer
    finally:
        # A body that was not read to its end would otherwise be waited for.
        if answer.content.at_eof():
            answer.release()
        else:
            answer.close()


async def _parts(system: HTTPFileSystem, url: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    import asyncio

    tasks = [asyncio.ensure_future(_part(system, url, start, end)) for start, end in ranges]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


async def _part(system: HTTPFileSystem, url: str, start: int, end: int) -> bytes:
    import asyncio

    async with _answer(system, url, (start, end)) as answer:
        answer.raise_for_status()
        part = _part_of(answer)
        if part is None or int(part[1]) != start or int(part[2]) != end - 1 or _encoding(answer) is not None:
            raise AnswerError(f"the server does not send the part that was asked for: bytes {start} to {end - 1}")
        return await asyncio.wait_for(_read(answer, end - start), WAIT_S + (end - start) / SLOWEST)


async def _read(answer: ClientResponse, size: int) -> bytes:
    """``size`` bytes of the body, or as many as come."""
    parts, left = [], size + 1
    while left and (data := await answer.content.read(left)):
        parts.append(data)
        left -= len(data)
    if not left:
        raise AnswerError(f"more than the {size:,} bytes that were asked for came")
    return b"".join(parts)
