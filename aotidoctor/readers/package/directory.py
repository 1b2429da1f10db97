"""A directory (an unpacked package), and a bare shared object with the files that belong to it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.artifact import Artifact, ArtifactKind, CrcState, Member
from aotidoctor.readers.package.gpu_code import SUFFIXES as GPU_SUFFIXES
from aotidoctor.readers.package.item import file_item
from aotidoctor.readers.package.metadata import SUFFIX as METADATA_SUFFIX
from aotidoctor.readers.package.models import build_model
from aotidoctor.readers.package.package import with_contents

MAX_FILES = 10_000
MAX_DEPTH = 12
BARE_MODEL = "model"


def read_directory(base: Artifact) -> Artifact:
    """Fill ``base`` from the files under its path. Links are listed, not followed."""
    root = Path(base.path)
    items = [file_item(member) for member in _walk(root)]
    problem = f"more than {MAX_FILES} files: the rest was not read" if len(items) >= MAX_FILES else None
    listed = replace(
        base,
        members=tuple(item.member for item in items),
        names_symlink=tuple(item.name for item in items if item.member.is_symlink),
        size=sum(item.member.size for item in items),
        problem=problem,
    )
    found = with_contents(listed, [item for item in items if not item.member.is_symlink])
    kind = ArtifactKind.AOTI_DIRECTORY if found.models else ArtifactKind.DIRECTORY
    return replace(found, kind=kind)


def read_bare_object(base: Artifact) -> Artifact:
    """Fill ``base`` from a shared object and the files beside it: same name, or device code."""
    items = [file_item(member) for member in _beside(Path(base.path), base.size)]
    counts: dict[str, int] = {}
    model = build_model(BARE_MODEL, "bare", "", items, counts)
    return replace(base, members=model.members, models=(model,), counts=counts)


def _beside(path: Path, size: int) -> Iterator[Member]:
    # The loader cuts the name at its last dot and adds .json; the compiler names the others alike. Whatever the
    # suffix of the file itself, it is the library.
    yield _member(path.name if path.suffix == ".so" else f"{path.name}.so", path, size, is_symlink=False)
    stem = path.name.rpartition(".")[0] or path.name
    alike = {f"{stem}.json", f"{stem}.cpp", f"{stem}{METADATA_SUFFIX}", f"{stem}.wrapper.cpp", f"{stem}_weights.blob"}
    for member in _walk(path.parent, depth=MAX_DEPTH):
        if member.name in alike or member.name.endswith(GPU_SUFFIXES):
            yield member


def _walk(root: Path, depth: int = 0) -> Iterator[Member]:
    """Regular files and links below ``root``, sorted, at most ``MAX_FILES``; what cannot be listed is left out."""
    pending = [(root, depth)]
    found = 0
    while pending and found < MAX_FILES:
        folder, level = pending.pop()
        for path in _entries(folder):
            member, is_folder = _examine(root, path)
            if is_folder and level < MAX_DEPTH:
                pending.append((path, level + 1))
            elif member is not None and found < MAX_FILES:
                found += 1
                yield member


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _examine(root: Path, path: Path) -> tuple[Member | None, bool]:
    try:
        status = os.lstat(path)
    except OSError:
        return None, False
    if stat.S_ISDIR(status.st_mode):
        return None, True
    is_link = stat.S_ISLNK(status.st_mode)
    if not is_link and not stat.S_ISREG(status.st_mode):
        return None, False
    return _member(path.relative_to(root).as_posix(), path, status.st_size, is_symlink=is_link), False


def _member(name: str, path: Path, size: int, *, is_symlink: bool) -> Member:
    return Member(
        name=name,
        size=size,
        compressed_size=size,
        crc=CrcState.NONE,
        data_offset=0,
        path=str(path),
        is_symlink=is_symlink,
    )
