"""Fetch files of URLs into a bounded cache, or read packages in place by ranges.

A cached file is used again where the server reports no change and its content still has the checksum. Of a package
that is read in place, only the requested parts come over the network, each once.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from aotidoctor.files import whole_file, write_file
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob
from aotidoctor.remote.remote_files import RemoteError, RemoteFile, base_name, clean_url, open_remote

# Cache: a folder with a bound, in which each file is kept with its checksum.
LARGEST = 20 << 30
"""Bytes that the folder may hold; what was not used for longest goes first."""
MOST_FILES = 2000
_FACTS = ".facts.json"
_CHUNK = 1 << 20


@record
class Fetched:
    """A file or folder of this machine that holds what is at a URL. ``came`` are the bytes that were fetched now."""

    path: str
    shown: str
    came: int


def fetch_file(url: str, folder: str, *, largest: int = LARGEST) -> Fetched:
    """Fetch the file or folder at ``url`` to a place below ``folder``. Raises RemoteError."""
    file = open_remote(url)
    try:
        if file.folder is not None:
            return _folder(file, Path(folder), largest)
        if file.size is not None and file.size > largest:
            raise RemoteError(f"{clean_url(url)}: {file.size:,} bytes, more than {largest:,} are not fetched")
        path, came = _one(file, Path(folder))
        _shrink(Path(folder), largest, keep=path.parent)
    except OSError as error:
        raise RemoteError(f"{clean_url(url)}: cannot be kept in {folder}: {error.strerror or error}") from error
    return Fetched(path=str(path), shown=clean_url(url), came=came)


def _folder(file: RemoteFile, folder: Path, largest: int) -> Fetched:
    """All that lies below it, anew: a folder has no version."""
    place = folder / _name(file.url, "folder") / base_name(file.url)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, mode=0o700)
    came = 0
    for name, each in file.below(MOST_FILES):
        target = place.joinpath(*name.split("/"))
        # A name of the server's: it stays below the folder.
        if os.path.commonpath([os.path.normpath(target), place]) != str(place):
            raise RemoteError(f"{clean_url(file.url)}: a file in it is called {name[:80]!r}")
        target.parent.mkdir(parents=True, exist_ok=True)
        came += _download(each, target)[1]
        if came > largest:
            raise RemoteError(f"{clean_url(file.url)}: more than {largest:,} bytes are not fetched")
    _shrink(folder, largest, keep=place.parent)
    return Fetched(path=str(place), shown=clean_url(file.url), came=came)


def _one(file: RemoteFile, folder: Path) -> tuple[Path, int]:
    place = folder / _name(file.url, file.version or "")
    path = place / base_name(file.url)
    if file.version is not None and _is_whole(path):
        with suppress(OSError):
            os.utime(place)
        return path, 0
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    sha256, came = _download(file, path)
    write_file(place / _FACTS, json.dumps({"sha256": sha256, "size": came, "url": clean_url(file.url)}))
    return path, came


def _name(url: str, version: str) -> str:
    """A folder per URL and version; credentials are no part of what a file is."""
    return hashlib.sha256(f"{clean_url(url)}\0{version}".encode()).hexdigest()[:32]


def _is_whole(path: Path) -> bool:
    """Whether the file is there with the content that once came."""
    try:
        facts = json.loads((path.parent / _FACTS).read_bytes())
        if path.stat().st_size != facts["size"]:
            return False
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            while data := stream.read(_CHUNK):
                digest.update(data)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(digest.hexdigest() == facts["sha256"])


def _download(file: RemoteFile, path: Path) -> tuple[str, int]:
    """The sha256 and size of what came. A file is there whole or not at all."""
    digest, size = hashlib.sha256(), 0
    with whole_file(path) as stream:
        for data in file.chunks():
            digest.update(data)
            size += stream.write(data)
    return digest.hexdigest(), size


def _shrink(folder: Path, largest: int, *, keep: Path) -> None:
    """Remove what was not used for longest until the rest fits."""
    places = [(place.stat().st_mtime, _size(place), place) for place in folder.iterdir() if place.is_dir()]
    total = sum(size for _, size, _ in places)
    for _, size, place in sorted(places):
        if total <= largest:
            return
        if place != keep:
            shutil.rmtree(place, ignore_errors=True)
            total -= size


def _size(place: Path) -> int:
    total = 0
    for here, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{here}/{name}").st_size
    return total


# Ranges.
BLOCK = 8 << 10
# What is read is mostly followed by more of it.
_AHEAD = 4
# Ranges that are asked for together; more of them would be many connections.
_TOGETHER = 64
# A package that needs more than that of itself to be read is fetched by who wants it read.
MOST_READ = 512 << 20


@dataclass(slots=True)
class RemoteRanges:
    """The blocks of ``file`` that came so far. ``bytes_read`` counts what came over the network."""

    file: RemoteFile
    size: int
    bytes_read: int = 0
    requests: int = 0
    _blocks: dict[int, bytes] = field(default_factory=dict)

    def blob(self) -> Blob:
        """Make a blob for the readers of packages. Its reads raise RemoteError."""
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
            if self.bytes_read > MOST_READ:
                raise RemoteError(
                    f"{clean_url(self.file.url)}: more than {MOST_READ:,} bytes of it are needed: download it"
                )
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
