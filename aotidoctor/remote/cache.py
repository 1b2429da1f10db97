"""Files of URLs on this machine: a folder with a bound, in which each file is kept with its checksum.

A file is used again where the server says that it has not changed, and where its content still has the checksum.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.remote.files import RemoteError, RemoteFile, at
from aotidoctor.remote.urls import base_name, clean

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


def fetch(url: str, folder: str, *, largest: int = LARGEST) -> Fetched:
    """What is at ``url``, below ``folder``. Raises RemoteError."""
    file = at(url)
    try:
        if file.is_folder:
            return _folder(file, Path(folder), largest)
        path, came = _one(file, Path(folder))
        _shrink(Path(folder), largest, keep=path.parent)
    except OSError as error:
        raise RemoteError(f"{clean(url)}: cannot be kept in {folder}: {error.strerror or error}") from error
    return Fetched(path=str(path), shown=clean(url), came=came)


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
            raise RemoteError(f"{clean(file.url)}: a file in it is called {name[:80]!r}")
        target.parent.mkdir(parents=True, exist_ok=True)
        came += _download(each, target)[1]
    _shrink(folder, largest, keep=place.parent)
    return Fetched(path=str(place), shown=clean(file.url), came=came)


def _one(file: RemoteFile, folder: Path) -> tuple[Path, int]:
    place = folder / _name(file.url, file.version or "")
    path = place / base_name(file.url)
    if file.version is not None and _is_whole(path):
        with suppress(OSError):
            os.utime(place)
        return path, 0
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    sha256, came = _download(file, path)
    _write(place / _FACTS, json.dumps({"sha256": sha256, "size": came, "url": clean(file.url)}).encode())
    return path, came


def _name(url: str, version: str) -> str:
    """A folder per URL and version; credentials are no part of what a file is."""
    return hashlib.sha256(f"{clean(url)}\0{version}".encode()).hexdigest()[:32]


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
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    digest, size = hashlib.sha256(), 0
    try:
        with draft.open("wb") as stream:
            for data in file.chunks():
                digest.update(data)
                size += stream.write(data)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return digest.hexdigest(), size


def _write(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(data)
    draft.replace(path)


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
    return sum(size for size in _sizes(place))


def _sizes(place: Path) -> Iterator[int]:
    for here, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):
                yield os.lstat(os.path.join(here, name)).st_size  # noqa: PTH118 - of any name
