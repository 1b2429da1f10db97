"""Read files at URLs, through fsspec where they are not HTTP, and print URLs without credentials.

fsspec is imported at the first request. Credentials hide in the front of a URL and
in its query.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.record import record
from aotidoctor.remote.http_files import AnswerError, HttpFile, open_http

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


# URLs. The scheme of a URL; one letter would be a drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,30})://")
_MOST_LISTED = "/:@!$()*,;=~+-._%[]"
# In the middle of a text: what a library says of a failure, or a word such as --inputs=https://…
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s\"'<>\\]{1,4096}")


def is_url(text: str) -> bool:
    """Whether ``text`` is a URL and no path."""
    return _SCHEME.match(text) is not None


def clean_url(url: str) -> str:
    """``url`` without user, password, query and fragment; what a terminal, HTML or JSON would obey is quoted."""
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
        return quote(urlunsplit((parts.scheme, place, parts.path, "", "")), safe=_MOST_LISTED)
    except ValueError:
        found = _SCHEME.match(url)
        return f"{found[1] if found else 'url'}://<not shown>"


def clean_text(text: str) -> str:
    """``text`` with every URL in it as ``clean`` shows it."""
    return _IN_TEXT.sub(lambda found: clean_url(found[0]), text) if "://" in text else text


def base_name(url: str) -> str:
    """The last part of a URL's path as a name of a file: letters, digits, dot, dash and underscore."""
    name = urlsplit(clean_url(url)).path.rstrip("/").rpartition("/")[2]
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[-80:].lstrip(".")
    return safe or "file"


# Files.
T = TypeVar("T")
INSTALL = "pip install 'aotidoctor[remote]'"
# A connection that breaks may be mended; a file that is not there stays away.
_ATTEMPTS, _PAUSE_S = 3, 0.2
PIECE = 4 << 20
MOST_UNANNOUNCED = 1 << 30
"""Bytes that are fetched of a file whose size the server does not give."""
# The last is Hugging Face's.
_VALIDATORS = "ETag etag LastModified last_modified mtime updated md5 Content-MD5 created generation blob_id"


class RemoteError(CannotExamineError):
    """A URL cannot be read; the message names it without credentials."""


@record
class _StoredFile:
    """A file of a protocol that fsspec knows."""

    system: AbstractFileSystem
    path: str

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
        found = self.system.cat_ranges([self.path] * len(ranges), starts, ends, on_error="raise")
        return [bytes(data) for data in found]

    def pieces(self) -> Iterator[bytes]:
        with self.system.open(self.path, "rb") as stream:
            while data := stream.read(PIECE):
                yield data


@record
class RemoteFile:
    """A file at a URL. ``size`` is None where the server does not give it. ``version`` changes with its content.

    ``version`` is None where it is unknown: then it may have changed whenever it is asked for again. ``has_ranges``:
    the server serves parts of it.
    """

    url: str
    size: int | None
    version: str | None
    has_ranges: bool
    _source: HttpFile | _StoredFile
    folder: _StoredFile | None = None

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes from start to end of each range, at once where the protocol can. Raises RemoteError."""
        found = _retry(self.url, lambda: self._source.read_ranges(ranges))
        for data, (start, end) in zip(found, ranges, strict=True):
            if len(data) != end - start:
                raise RemoteError(f"{clean_url(self.url)}: {len(data)} bytes came, expected {end - start}")
        return found

    def chunks(self) -> Iterator[bytes]:
        """The whole file in pieces. Raises RemoteError, also where not as many bytes come as were announced."""
        total = 0
        try:
            for data in self._source.pieces():
                total += len(data)
                self._refuse_more(total)
                yield data
        except Exception as error:
            raise _remote_error(self.url, error) from error
        if self.size is not None and total != self.size:
            raise RemoteError(f"{clean_url(self.url)}: cut off: {total} bytes came, expected {self.size}")

    def _refuse_more(self, total: int) -> None:
        most, rule = MOST_UNANNOUNCED, "are fetched of a file without a size"
        if self.size is not None:
            most, rule = self.size, "were announced"
        if total > most:
            raise RemoteError(f"{clean_url(self.url)}: it sends more than the {most:,} bytes that {rule}")

    def below(self, most: int) -> list[tuple[str, RemoteFile]]:
        """The files of a folder, by their path within it. Raises RemoteError."""
        if self.folder is None:
            return []
        system, path = self.folder.system, self.folder.path
        found: Mapping[str, Mapping[str, object]]
        found = _retry(self.url, lambda: system.find(path, detail=True))
        if len(found) > most:
            raise RemoteError(f"{clean_url(self.url)}: {len(found):,} files, more than {most:,} are not fetched")
        root = path.rstrip("/") + "/"
        return [
            (
                name.removeprefix(root),
                _stored(
                    f"{self.url.rstrip('/')}/{name.removeprefix(root)}", _StoredFile(system=system, path=name), info
                ),
            )
            for name, info in sorted(found.items())
            if name.startswith(root)
        ]


def open_remote(url: str) -> RemoteFile:
    """Open the file or folder at ``url``. Raises RemoteError."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise RemoteError(f"{clean_url(url)}: URLs need fsspec; {INSTALL}") from error
    try:
        if url.startswith(("http://", "https://")):
            file = _retry(url, lambda: open_http(url))
            return RemoteFile(url=url, size=file.size, version=file.version, has_ranges=file.has_ranges, _source=file)
        system, path = url_to_fs(url)
    except Exception as error:
        raise _remote_error(url, error) from error
    return _stored(url, _StoredFile(system=system, path=path), _retry(url, lambda: system.info(path)))


def _stored(url: str, file: _StoredFile, info: Mapping[str, object]) -> RemoteFile:
    size = info.get("size")
    parts = [f"{name}={info[name]}" for name in _VALIDATORS.split() if info.get(name) is not None]
    is_folder = info.get("type") == "directory"
    return RemoteFile(
        url=url,
        size=size if isinstance(size, int) else None,
        version=";".join([str(size), *parts]) if parts else None,
        has_ranges=isinstance(size, int) and not is_folder,
        _source=file,
        folder=file if is_folder else None,
    )


def _retry(url: str, ask: Callable[[], T]) -> T:
    """The answer, after some attempts where a connection broke. Raises RemoteError."""
    left = _ATTEMPTS
    while True:
        left -= 1
        try:
            return ask()
        except Exception as error:
            if not left or not _may_pass(error):
                raise _remote_error(url, error) from error
        time.sleep(_PAUSE_S)


def _may_pass(error: Exception) -> bool:
    status = _status(error)
    if status is not None:
        return status >= 500
    # A server that kept silent once is not waited for again.
    return not _is_late(error) and not isinstance(
        error,
        (RemoteError, AnswerError, FileNotFoundError, PermissionError, NotADirectoryError, ValueError, ImportError),
    )


def _is_late(error: Exception) -> bool:
    """Whether a wait ended: the error of asyncio is one of its own before Python 3.11."""
    return isinstance(error, TimeoutError) or "Timeout" in type(error).__name__


def _status(error: BaseException) -> int | None:
    """The status of a server's answer, also where a library made another error of it."""
    for one in (error, error.__cause__, error.__context__):
        status = getattr(one, "status", None)
        if isinstance(status, int) and status >= 400:
            return status
    return None


def _reason_text(reason: OSError) -> str:
    """What the system says, and what to look at."""
    # Of the resolver, whose errors are below zero.
    if (reason.errno or 0) < 0:
        return f"{reason.strerror or reason}; is the name of the host right?"
    if isinstance(reason, ConnectionRefusedError):
        return "refused; does a server listen at this host and port?"
    return clean_text(str(reason))[:200]


def _remote_error(url: str, error: Exception) -> RemoteError:
    """The error in our words: the library's may hold the URL with all that is in it."""
    if isinstance(error, RemoteError):
        return error
    status = _status(error)
    if status is not None and status != 404:
        return RemoteError(f"{clean_url(url)}: the server answers {status}")
    if _is_late(error):
        return RemoteError(f"{clean_url(url)}: the server does not answer")
    if "Redirect" in (name := type(error).__name__):
        where = "again and again" if name == "TooManyRedirects" else "to what is no address of the web"
        return RemoteError(f"{clean_url(url)}: it redirects {where}")
    if (reason := getattr(error, "os_error", None)) is not None:
        return RemoteError(f"{clean_url(url)}: no connection: {_reason_text(reason)}")
    if isinstance(error, AnswerError):
        return RemoteError(f"{clean_url(url)}: {error}")
    if isinstance(error, FileNotFoundError) or status == 404:
        return RemoteError(f"no such file: {clean_url(url)}")
    if isinstance(error, ImportError):
        return RemoteError(
            f"{clean_url(url)}: this protocol needs an additional package: {clean_text(str(error))[:200]}"
        )
    parts = clean_text(str(error)).replace(url, clean_url(url))[:200]
    return RemoteError(f"{clean_url(url)}: {name}: {parts}" if parts else f"{clean_url(url)}: {name}")
