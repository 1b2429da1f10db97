"""Read files at URLs through fsspec, and print URLs without credentials.

The only module that knows fsspec, which it imports at the first request. Credentials hide in the front of a URL and
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
_WAIT_S = 60.0
PIECE = 4 << 20
_VALIDATORS = (
    "ETag",
    "etag",
    "LastModified",
    "last_modified",
    "mtime",
    "updated",
    "md5",
    "Content-MD5",
    "created",
    "generation",
)


class RemoteError(CannotExamineError):
    """A URL cannot be read; the message names it without credentials."""


@record
class RemoteFile:
    """A file at a URL. ``size`` is None where the server does not say. ``version`` changes with its content.

    ``version`` is None where it is unknown: then it may have changed whenever it is asked for again.
    """

    url: str
    size: int | None
    version: str | None
    is_folder: bool
    _system: AbstractFileSystem
    _path: str

    def has_ranges(self) -> bool:
        """Whether the server serves parts of it. Raises RemoteError."""
        if self.size is None or self.is_folder:
            return False
        if "http" not in self._system.protocol or self.size < 2:
            return True

        def probe() -> bool:
            # Read as a stream: a server that sends the whole file instead is not listened to to its end.
            with self._system.open(self._path, "rb", block_size=1, cache_type="none") as stream:
                stream.seek(1)
                try:
                    return len(stream.read(1)) == 1
                except ValueError:
                    return False

        return _retry(self.url, probe)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes from start to end of each range, at once where the protocol can. Raises RemoteError."""
        starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
        paths = [self._path] * len(ranges)
        found = _retry(self.url, lambda: self._system.cat_ranges(paths, starts, ends, on_error="raise"))
        for data, (start, end) in zip(found, ranges, strict=True):
            if len(data) != end - start:
                raise RemoteError(f"{clean_url(self.url)}: {len(data)} bytes came, expected {end - start}")
        return [bytes(data) for data in found]

    def chunks(self) -> Iterator[bytes]:
        """The whole file in pieces. Raises RemoteError, also where fewer bytes come than were announced."""
        total = 0
        try:
            # One request for all, where the protocol would ask for pieces: a server may not give these.
            with self._system.open(
                self._path, "rb", **{"block_size": 0} if "http" in self._system.protocol else {}
            ) as stream:
                while data := stream.read(PIECE):
                    total += len(data)
                    yield data
        except Exception as error:
            raise _remote_error(self.url, error) from error
        if self.size is not None and total != self.size:
            raise RemoteError(f"{clean_url(self.url)}: cut off: {total} bytes came, expected {self.size}")

    def below(self, most: int) -> list[tuple[str, RemoteFile]]:
        """The files of a folder, by their path within it. Raises RemoteError."""
        found: Mapping[str, Mapping[str, object]]
        found = _retry(self.url, lambda: self._system.find(self._path, detail=True))
        if len(found) > most:
            raise RemoteError(f"{clean_url(self.url)}: {len(found):,} files, more than {most:,} are not fetched")
        root = self._path.rstrip("/") + "/"
        return [
            (
                path.removeprefix(root),
                _file(f"{self.url.rstrip('/')}/{path.removeprefix(root)}", self._system, path, info),
            )
            for path, info in sorted(found.items())
            if path.startswith(root)
        ]


def open_remote(url: str) -> RemoteFile:
    """Open the file or folder at ``url``. Raises RemoteError."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise RemoteError(f"{clean_url(url)}: URLs need fsspec; {INSTALL}") from error
    try:
        options: dict[str, object] = {}
        if url.startswith(("http://", "https://")):
            from aiohttp import ClientTimeout

            # No wait without an end.
            timeout = ClientTimeout(total=None, sock_connect=_WAIT_S, sock_read=_WAIT_S)
            options = {"client_kwargs": {"timeout": timeout}}
        system, path = url_to_fs(url, **options)
    except Exception as error:
        raise _remote_error(url, error) from error
    return _file(url, system, path, _retry(url, lambda: system.info(path)))


def _file(url: str, system: AbstractFileSystem, path: str, info: Mapping[str, object]) -> RemoteFile:
    size = info.get("size")
    parts = [f"{name}={info[name]}" for name in _VALIDATORS if info.get(name) is not None]
    return RemoteFile(
        url=url,
        size=size if isinstance(size, int) else None,
        version=";".join([str(size), *parts]) if parts else None,
        is_folder=info.get("type") == "directory",
        _system=system,
        _path=path,
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
    return not isinstance(
        error, (RemoteError, FileNotFoundError, PermissionError, NotADirectoryError, ValueError, ImportError)
    )


def _status(error: BaseException) -> int | None:
    """The status of a server's answer, also where a library made another error of it."""
    for one in (error, error.__cause__, error.__context__):
        status = getattr(one, "status", None)
        if isinstance(status, int) and status >= 400:
            return status
    return None


def _remote_error(url: str, error: Exception) -> RemoteError:
    """The error in our words: the library's may hold the URL with all that is in it."""
    if isinstance(error, RemoteError):
        return error
    status = _status(error)
    if status is not None and status != 404:
        return RemoteError(f"{clean_url(url)}: the server answers {status}")
    if (isinstance(error, FileNotFoundError) and not isinstance(error.__cause__, ConnectionError)) or status == 404:
        return RemoteError(f"no such file: {clean_url(url)}")
    if isinstance(error, ImportError):
        return RemoteError(
            f"{clean_url(url)}: this protocol needs an additional package: {clean_text(str(error))[:200]}"
        )
    parts = clean_text(str(error)).replace(url, clean_url(url))[:200]
    return RemoteError(
        f"{clean_url(url)}: {type(error).__name__}: {parts}" if parts else f"{clean_url(url)}: {type(error).__name__}"
    )
