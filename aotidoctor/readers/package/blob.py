"""Read bytes at an offset of a file, of memory or of a registered source, and decode them to text or JSON.

Two gigabytes of weights must cost neither time nor memory, so nothing in this stage reads a file or a member whole
unless it has first looked at its size. Decoding raises nothing for content but ``JsonError``.

A package that is not on this machine is registered under a name by the code that can fetch its parts; the readers
then read it by ranges, as they read files.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from aotidoctor.files import O_BINARY, O_CLOEXEC, O_NONBLOCK, read_range
from aotidoctor.model.errors import CannotExamineError, examining
from aotidoctor.model.record import JsonObject, JsonValue, record

CHUNK = 1 << 20


@record(kw_only=False)
class Blob:
    """A run of ``size`` bytes. ``read_at(offset, length)`` gives at most ``length`` bytes, fewer past the end.

    ``prefetch`` takes what will be read, as offsets with lengths, where fetching it together is cheaper.
    """

    size: int
    read_at: Callable[[int, int], bytes]
    prefetch: Callable[[Sequence[tuple[int, int]]], None] | None = None

    def read_all(self, limit: int) -> bytes | None:
        """All bytes, or None when there are more than ``limit``."""
        return self.read_at(0, self.size) if self.size <= limit else None

    def part(self, start: int, size: int) -> Blob:
        """The ``size`` bytes from ``start`` on, as a run of their own."""
        return Blob(
            size, lambda at, length: self.read_at(start + at, min(length, size - at)) if 0 <= at < size else b""
        )

    def chunks(self) -> Iterator[bytes]:
        """The bytes from the beginning, in pieces of at most 1 MiB; ends early where the file does."""
        position = 0
        while position < self.size:
            data = self.read_at(position, CHUNK)
            if not data:
                return
            yield data
            position += len(data)

    def sha256(self) -> str:
        """The digest of all bytes, in hexadecimal."""
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()


def file_blob(descriptor: int, size: int) -> Blob:
    """The first ``size`` bytes of an open file. The descriptor must stay open while the blob is in use."""

    def read_at(start: int, length: int) -> bytes:
        wanted = min(length, size - start)
        if start < 0 or wanted <= 0:
            return b""
        data = read_range(descriptor, wanted, start)
        if not 0 < len(data) < wanted:
            return data
        # It may give less (2 GiB limit, network file systems): go on until there is no more.
        parts, got = [data], len(data)
        while data and got < wanted:
            data = read_range(descriptor, wanted - got, start + got)
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    return Blob(size, read_at)


@contextmanager
def opened_blob(path: str | Path) -> Iterator[tuple[Blob, int]]:
    """The file at ``path`` with its mode; opening a named pipe does not wait. Raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_BINARY)
    except ValueError as error:
        # A NUL character.
        raise OSError(errno.EINVAL, str(error)) from error
    try:
        status = os.fstat(descriptor)
        yield file_blob(descriptor, status.st_size), status.st_mode
    finally:
        os.close(descriptor)


def path_blob(path: str, size: int) -> Blob:
    """A blob over a file that is opened for each read, so nothing has to be closed later; empty when it is gone."""

    def read_at(start: int, length: int) -> bytes:
        try:
            descriptor = os.open(path, os.O_RDONLY | O_CLOEXEC | O_BINARY)
        except OSError:
            return b""
        try:
            return file_blob(descriptor, size).read_at(start, length)
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    return Blob(size, read_at)


def bytes_blob(data: bytes) -> Blob:
    """A blob over bytes in memory."""
    return Blob(len(data), lambda at, length: data[at : at + length] if at >= 0 and length > 0 else b"")


# Packages that are not on this machine.
_REGISTERED: dict[str, Blob] = {}


@contextmanager
def register_source(name: str, blob: Blob) -> Iterator[None]:
    """Read ``name`` through ``blob`` within the block."""
    _REGISTERED[name] = blob
    try:
        yield
    finally:
        _REGISTERED.pop(name, None)


def registered_source(name: str) -> Blob | None:
    """The blob that is registered for ``name``; None for a path."""
    return _REGISTERED.get(name)


class JsonError(ValueError):
    """The bytes are not the JSON that was expected; the text says why."""


def decode(data: bytes) -> str:
    """The text of UTF-8 bytes, with replacement characters."""
    return data.decode("utf-8", "replace")


def clean_surrogates(text: str) -> str:
    """``text`` without lone surrogates: JSON escapes can make strings that no stream can print."""
    return text.encode("utf-8", "replace").decode("utf-8")


def parse_json(data: bytes) -> JsonValue:
    """Parse JSON. Raises ``JsonError`` for anything else, also for nesting too deep and numbers too long."""
    try:
        value: JsonValue = json.loads(data)
    except RecursionError as error:
        raise JsonError("nested too deep") from error
    except ValueError as error:
        raise JsonError(clean_surrogates(str(error))) from error
    return value


# In bytes. Reports and profiles of hosts are cut long before.
_LARGEST_DOCUMENT = 64 << 20


def read_document(path: str, expected: str, *schemas: str) -> JsonObject:
    """The document of one of ``schemas`` in the file, which is ``expected`` there. Raises CannotExamineError."""
    with examining(path), opened_blob(path) as (blob, mode):
        if not stat.S_ISREG(mode):
            raise CannotExamineError(f"{path}: observed no regular file, expected {expected}")
        data = blob.read_all(_LARGEST_DOCUMENT)
    if data is None:
        raise CannotExamineError(f"{path}: observed more than {_LARGEST_DOCUMENT} bytes, expected {expected}")
    try:
        document = parse_json(data)
    except JsonError as error:
        raise CannotExamineError(f"{path}: observed invalid JSON ({str(error)[:80]}), expected {expected}") from error
    if not isinstance(document, dict) or document.get("schema") not in schemas:
        raise CannotExamineError(f"{path}: observed different JSON, expected {expected} ({schemas[0]})")
    return document


def as_text(value: JsonValue) -> str:
    """The value if it is a string (cleaned), else an empty one."""
    return clean_surrogates(value) if isinstance(value, str) else ""
