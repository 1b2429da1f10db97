"""A zip archive to an ``Artifact``: integrity first, then what it is, then its models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.artifact import Artifact, CrcState, Member
from aotidoctor.readers.package.blob import Blob
from aotidoctor.readers.package.integrity import crc_states, mismatches, overlapping, oversized
from aotidoctor.readers.package.item import Item, archive_item
from aotidoctor.readers.package.names import duplicate_names, is_symlink_mode, unsafe_names
from aotidoctor.readers.package.package import with_contents
from aotidoctor.readers.package.zip_directory import DEFLATED, STORED, Entry, ZipDirectory


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
        names_symlink=tuple(entry.name for entry in entries if is_symlink_mode(entry.mode)),
        names_directory=tuple(name for name in names if name.endswith("/")),
        bad_crc=_in_state(names, states, CrcState.BAD),
        unread_crc=_in_state(names, states, CrcState.NOT_READ),
        oversized=oversized(blob, entries),
        overlapping=overlapping(entries),
        header_mismatch=mismatches(entries),
        problem=directory.problem,
        counts=_counts(directory),
    )
    return with_contents(checked, items)


def archive_items(path: str, blob: Blob, entries: Sequence[Entry], states: Sequence[CrcState]) -> list[Item]:
    """One item per entry, in directory order."""
    return [
        archive_item(_member(path, entry, state), entry, blob) for entry, state in zip(entries, states, strict=True)
    ]


def _member(path: str, entry: Entry, state: CrcState) -> Member:
    return Member(
        name=entry.name,
        size=entry.size,
        compressed_size=entry.compressed,
        crc=state,
        data_offset=entry.data_offset if entry.method == STORED and not entry.encrypted else None,
        path=path,
        is_symlink=is_symlink_mode(entry.mode),
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
