"""From a path to an ``Artifact``. Runs nothing, extracts nothing, raises nothing for what the file contains."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.artifact import Artifact, ArtifactKind, CrcState, ExportedFacts
from aotidoctor.readers.package.archive import read_archive, unchecked_items
from aotidoctor.readers.package.blob import Blob, opened_blob
from aotidoctor.readers.package.directory import read_bare_object, read_directory
from aotidoctor.readers.package.integrity import DEFAULT_CRC_LIMIT, crc_states, damage
from aotidoctor.readers.package.kind import HEAD_SIZE, first_line, object_format, sniff
from aotidoctor.readers.package.package import read_programs
from aotidoctor.readers.package.sources import source
from aotidoctor.readers.package.zip_directory import read_directory as read_zip_directory

HASH_LIMIT = 64 << 20
_ZIP = (b"PK\3\4", b"PK\5\6", b"PK\1\2")


def read_artifact(path: str, *, crc_limit: int = DEFAULT_CRC_LIMIT) -> Artifact:
    """Read what is at ``path``: a file of any kind or a directory.

    Checksums are compared for members of ``crc_limit`` bytes in total, shared objects and small members first; the
    others are listed in ``unread_crc``. ``sha256`` is set for files up to 64 MiB. Nothing is raised for content: a
    file that cannot be opened gives ``MISSING`` or ``UNREADABLE``.
    """
    remote = source(path)
    if remote is not None:
        base = Artifact(path=path, kind=ArtifactKind.OTHER, size=remote.size)
        # Whole members are not fetched for their checksums.
        return _read_file(base, remote, 0, whole=False)
    base = _at(path)
    if base.kind is not ArtifactKind.OTHER or base.problem is not None:
        return base
    try:
        if Path(path).is_dir():
            return read_directory(base)
        with opened_blob(path) as (blob, _):
            return _read_file(replace(base, size=blob.size), blob, crc_limit)
    except OSError as error:
        return replace(base, kind=ArtifactKind.UNREADABLE, problem=error.strerror or str(error))


def read_exported(path: str) -> tuple[ExportedFacts, ...]:
    """Facts of the exported programs in an archive; empty when ``path`` is no torch.export archive."""
    try:
        if not Path(path).is_file():
            return ()
        with opened_blob(path) as (blob, _):
            return read_programs(unchecked_items(path, blob) or (), {})
    except (OSError, ValueError):
        return ()


def read_damage(path: str) -> str | None:
    """What ``damage`` says of an archive, as far as ``DEFAULT_CRC_LIMIT`` goes; None also where it cannot be read."""
    try:
        if not Path(path).is_file():
            return None
        with opened_blob(path) as (blob, _):
            directory = read_zip_directory(blob)
            entries = directory.entries if directory is not None else ()
            states = crc_states(blob, entries, DEFAULT_CRC_LIMIT)
    except (OSError, ValueError):
        return None
    return damage([entry.name for entry, state in zip(entries, states, strict=True) if state is CrcState.BAD])


def _at(path: str) -> Artifact:
    """What the file system says. ``OTHER`` without a problem means: go on and read it."""
    base = Artifact(path=path, kind=ArtifactKind.OTHER, size=0)
    try:
        link = str(Path(path).readlink()) if Path(path).is_symlink() else None
        base = replace(base, is_symlink=link is not None, link_target=link)
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return replace(base, kind=ArtifactKind.MISSING)
    except OSError as error:
        return replace(base, kind=ArtifactKind.UNREADABLE, problem=error.strerror or str(error))
    except ValueError as error:
        # A path with a NUL character cannot exist.
        return replace(base, kind=ArtifactKind.MISSING, problem=str(error))
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return replace(base, problem="not a regular file")
    return base


def _read_file(base: Artifact, blob: Blob, crc_limit: int, *, whole: bool = True) -> Artifact:
    head = blob.read_at(0, HEAD_SIZE)
    base = replace(base, sha256=blob.sha256() if whole and blob.size <= HASH_LIMIT else None)
    is_zip = head.startswith(_ZIP)
    # Something may have been put before the archive, but a file that begins as an object is one.
    directory = read_zip_directory(blob) if is_zip or object_format(head) is None else None
    if directory is not None and (is_zip or directory.entries):
        return read_archive(base, blob, directory, crc_limit)
    if is_zip:
        return replace(base, kind=ArtifactKind.TRUNCATED_ZIP, problem="its end record is missing")
    kind, problem = sniff(head, blob.size)
    found = replace(base, kind=kind, problem=problem)
    match kind:
        case ArtifactKind.TEXT | ArtifactKind.LFS_POINTER:
            return replace(found, first_line=first_line(head))
        case ArtifactKind.BARE_SO:
            return read_bare_object(found)
    return found
