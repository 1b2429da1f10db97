"""A shared object on disk, and those of its symbols whose names hold a given text."""

from __future__ import annotations

import os
import re

from aotidoctor.model.artifact import SharedObject
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob, opened_blob
from aotidoctor.readers.package.elf import DAMAGED, read_elf
from aotidoctor.readers.package.elf_dynamic import read_dynamic
from aotidoctor.readers.package.elf_symbols import exported_names
from aotidoctor.readers.package.shared_object import read_shared_object

_LARGEST_STRINGS = 64 << 20


@record
class NamedSymbols:
    """``exported`` are names that the dynamic loader finds; ``hidden`` are names of the object that it does not."""

    compiled: SharedObject
    exported: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def read_named_symbols(path: str, part: str) -> NamedSymbols:
    """Read the object at ``path``. Raises ``OSError``; damage does not raise: it is told in ``compiled.problem``."""
    with opened_blob(path) as (blob, _):
        compiled = read_shared_object(blob, os.path.basename(path))  # noqa: PTH119 - a name to show, no path to use
        if compiled.format != "elf" or compiled.problem:
            return NamedSymbols(compiled=compiled)
        return _with_symbols(blob, compiled, part)


def _with_symbols(blob: Blob, compiled: SharedObject, part: str) -> NamedSymbols:
    try:
        elf = read_elf(blob)
        exported = exported_names(elf, read_dynamic(elf), part)
    except DAMAGED:
        return NamedSymbols(compiled=compiled)
    section = elf.section(".strtab")
    names: set[str] = set()
    if section is not None and section.size <= _LARGEST_STRINGS:
        strings = blob.read_at(section.offset, section.size)
        found = re.findall(rb"(?<=\0)[^\0]*" + re.escape(part.encode()) + rb"[^\0]*(?=\0)", strings)
        names = {name.decode("utf-8", "backslashreplace") for name in found}
    return NamedSymbols(compiled=compiled, exported=exported, hidden=tuple(sorted(names - set(exported))))
