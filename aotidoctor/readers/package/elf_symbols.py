"""Symbols of a shared object: what it wants, which AOTI entry points and kernels it has, where its constants are.

Tables are read in one piece and unpacked by ``struct``: an object for every symbol would take ten times as long, and
only a few names matter.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from aotidoctor.model.artifact import SymbolRef
from aotidoctor.model.record import record
from aotidoctor.readers.package.elf import Elf
from aotidoctor.readers.package.elf_dynamic import MAX_SYMBOLS, Dynamic, string_at

_WEAK = 2
_MAX_STRINGS = 64 << 20
_ENTRY_POINT = b"AOTInductor"
_CONSTANTS = (b"_binary_constants_bin_start\0", b"_binary_constants_bin_end\0")
_KERNEL = re.compile(rb"\0((?:cpp|triton)_\w+)(?=\0)")
_MANGLED_CALL = re.compile(rb"\0_Z(\d+)call_(triton_\w+)(?=\0)")


@record
class DynamicSymbols:
    """``constants_at`` is the address range of the embedded constants."""

    undefined: tuple[SymbolRef, ...]
    entry_points: tuple[str, ...]
    constants_at: tuple[int, int] | None


def read_dynamic_symbols(elf: Elf, dynamic: Dynamic) -> DynamicSymbols:
    """One pass over ``.dynsym``."""
    undefined: list[SymbolRef] = []
    entry_points: list[str] = []
    constants: dict[int, int] = {}
    strings = dynamic.strings
    for index, (name, info, section, value) in enumerate(_rows(elf, dynamic)):
        if index == 0 or name == 0:
            continue
        if section == 0:
            if info >> 4:
                undefined.append(_reference(dynamic, index, name, info))
        elif strings.startswith(_ENTRY_POINT, name):
            entry_points.append(string_at(strings, name))
        else:
            for which, wanted in enumerate(_CONSTANTS):
                if strings.startswith(wanted, name):
                    constants[which] = value
    span = (constants[0], constants[1]) if len(constants) == 2 else None
    return DynamicSymbols(undefined=tuple(undefined), entry_points=tuple(sorted(entry_points)), constants_at=span)


def read_kernel_symbols(elf: Elf, dynamic: Dynamic) -> tuple[str, ...]:
    """Names of generated kernels, from the string table of ``.symtab`` or, when stripped, of ``.dynsym``.

    CUDA packages have no symbol called like the kernel, but a mangled ``call_<kernel>`` template for each.
    """
    section = elf.section(".strtab")
    strings = dynamic.strings
    if section is not None and section.size <= _MAX_STRINGS:
        strings = elf.blob.read_at(section.offset, section.size)
    names = {name.decode("ascii") for name in _KERNEL.findall(strings)}
    for length, text in _MANGLED_CALL.findall(strings):
        # The number is the length of the name, "call_" included; template arguments follow.
        names.add(text[: max(int(length[:6]) - 5, 0)].decode("ascii"))
    return tuple(sorted(name for name in names if name))


def exported_names(elf: Elf, dynamic: Dynamic, part: str) -> tuple[str, ...]:
    """The names that the object exports and that hold ``part``, sorted."""
    defined = (string_at(dynamic.strings, offset) for offset, _, section, _ in _rows(elf, dynamic) if section)
    return tuple(sorted({name for name in defined if part in name}))


def _reference(dynamic: Dynamic, index: int, name: int, info: int) -> SymbolRef:
    version_index = dynamic.version_indices[index] & 0x7FFF if index < len(dynamic.version_indices) else 0
    version, library = dynamic.versions.get(version_index, (None, None))
    return SymbolRef(name=string_at(dynamic.strings, name), version=version, library=library, weak=info >> 4 == _WEAK)


def _rows(elf: Elf, dynamic: Dynamic) -> Iterator[tuple[int, int, int, int]]:
    """``(name offset, info, section index, value)`` of each symbol."""
    form = struct.Struct(elf.order + ("IBBHQQ" if elf.bits == 64 else "IIIBBH"))
    count = min(dynamic.symbol_count, MAX_SYMBOLS)
    data = elf.read_vaddr(dynamic.symbols_at, count * form.size)
    for row in form.iter_unpack(data[: len(data) // form.size * form.size]):
        if elf.bits == 64:
            yield row[0], row[1], row[3], row[4]
        else:
            yield row[0], row[3], row[5], row[1]
