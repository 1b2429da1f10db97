"""The texts of a shared object: what its read-only sections hold between zero bytes."""

from __future__ import annotations

from collections.abc import Iterator

from aotidoctor.readers.package.blob import path_blob
from aotidoctor.readers.package.elf import DAMAGED, read_elf

# Weights may lie in such a section too, and are not looked through.
LARGEST = 8 << 20


def read_texts(path: str, size: int) -> Iterator[bytes]:
    """The texts of the ELF file at ``path`` of ``size`` bytes, in order; none of another file."""
    blob = path_blob(path, size)
    try:
        sections = read_elf(blob).sections
    except DAMAGED:
        return
    for section in sections:
        if section.name.startswith(".rodata") and section.size <= LARGEST:
            yield from blob.read_at(section.offset, section.size).split(b"\0")
