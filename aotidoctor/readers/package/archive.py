"""A zip archive to an ``Artifact``: integrity first, then what it is, then its models."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.artifact import Artifact, CrcState, Member
from aotidoctor.readers.package.blob import Blob, path_blob
from aotidoctor.readers.package.integrity import crc_states, overlapping, oversized
from aotidoctor.readers.package.item import Item, archive_item
from aotidoctor.readers.package.names import duplicate_names, unsafe_names
from aotidoctor.readers.package.package import with_contents
from aotidoctor.readers.package.sources import source
from aotidoctor.readers.package.zip_directory import DEFLATED, STORED, Entry, ZipDirectory, read_directory


def read_archive(base: Artifact, blob: Blob, directory: ZipDirectory, crc_limit: int) -> Artifact:
    """Fill ``base`` (path, size and hash are set) from the archive in ``blob``."""
    entries = directory.entries
    states = crc_states(blob, entries, crc_limit)
    items = archive_items(base.path, blob, entries, states)
    names = [entry.name for entry in entries]
    checked = replace(
        base,
        members=tuple(item.member for item in items),
        names_duplicate=duplicate_names(names),
        names_unsafe=unsafe_names(names),
        names_symlink=tuple(entry.name for entry in entries if stat.S_ISLNK(entry.mode)),
        names_directory=tuple(name for name in names if name.endswith("/")),
        bad_crc=_in_state(names, states, CrcState.BAD),
        unread_crc=_in_state(names, states, CrcState.NOT_READ),
        oversized=oversized(blob, entries),
        overlapping=overlapping(entries),
        problem=directory.problem,
        counts=_counts(directory),
    )
    return with_contents(checked, items)


def archive_items(path: str, blob: Blob, entries: Sequence[Entry], states: Sequence[CrcState]) -> list[Item]:
    """One item per entry, in directory order."""
    return [
        archive_item(_member(path, entry, state), entry, blob) for entry, state in zip(entries, states, strict=True)
    ]


def zip_items(path: str) -> list[Item] | None:
    """The members of the zip archive at ``path``, readable as long as it is there; None when it is none."""
    try:
        remote = source(path)
        if remote is None and not Path(path).is_file():
            return None
        return unchecked_items(path, remote or path_blob(path, Path(path).stat().st_size))
    except (OSError, ValueError):
        return None


def unchecked_items(path: str, blob: Blob) -> list[Item] | None:
    """The members of the archive in ``blob``, their checksums not compared; None when it is none."""
    directory = read_directory(blob)
    if directory is None:
        return None
    return archive_items(path, blob, directory.entries, [CrcState.NOT_READ] * len(directory.entries))


def _member(path: str, entry: Entry, state: CrcState) -> Member:
    return Member(
        name=entry.name,
        size=entry.size,
        compressed_size=entry.compressed,
        crc=state,
        data_offset=entry.data_offset if entry.method == STORED and not entry.encrypted else None,
        path=path,
        is_symlink=stat.S_ISLNK(entry.mode),
    )


def _in_state(names: Sequence[str], states: Sequence[CrcState], wanted: CrcState) -> tuple[str, ...]:
    return tuple(name for name, state in zip(names, states, strict=True) if state is wanted)


def _counts(directory: ZipDirectory) -> dict[str, int]:
    entries = directory.entries
    found = {
        "trailing_bytes": directory.trailing,
        "encrypted_members": sum(entry.encrypted for entry in entries),
        "unknown_compression": sum(entry.method not in (STORED, DEFLATED) for entry in entries),
        "backslash_names": sum("\\" in entry.name for entry in entries),
    }
    return {key: number for key, number in found.items() if number}
