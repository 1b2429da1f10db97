"""The ELF image of a loaded library, read from this process's own memory."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path

from aotidoctor.model.record import record

_PT_LOAD, _PT_DYNAMIC = 1, 2
_STRTAB, _SYMTAB, _RELA, _RELASZ, _PLTRELSZ, _JMPREL = 5, 6, 7, 8, 2, 23
_RELA_SIZE, _SYM_SIZE = 24, 24


@record
class Relocation:
    """One slot that the dynamic linker filled in: its address, the symbol, and the type of the relocation."""

    address: int
    symbol: str
    type: int


def loaded_libraries(directory: Path) -> list[tuple[Path, int]]:
    """``(path, address of the first mapping)`` of each shared object below ``directory`` that is mapped."""
    found: dict[Path, int] = {}
    root = directory.resolve()
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or not fields[5].endswith(".so"):
            continue
        path = Path(fields[5])
        if root in path.parents and int(fields[2], 16) == 0:
            found.setdefault(path, int(fields[0].partition("-")[0], 16))
    return list(found.items())


def relocations(base: int) -> list[Relocation]:
    """All symbol relocations of the image at ``base``, those of the PLT and those of the GOT."""
    bias, dynamic = _segments(base)
    if dynamic is None:
        return []
    tags = _absolute(_tags(dynamic), base, bias)
    if _SYMTAB not in tags or _STRTAB not in tags:
        return []
    found = []
    for table, size in ((_JMPREL, _PLTRELSZ), (_RELA, _RELASZ)):
        if table in tags and size in tags:
            found += _read(tags[table], tags[size], tags[_SYMTAB], tags[_STRTAB], bias)
    return found


def call_tables(base: int) -> tuple[bytes, int, int, int]:
    """``(relocations of calls, address of the symbols, of their names, load bias)`` of the image at ``base``.

    Raw, for those who look for one of many: ``relocations`` makes an object of each. Empty where there are none.
    """
    bias, dynamic = _segments(base)
    tags = _absolute(_tags(dynamic), base, bias) if dynamic is not None else {}
    if not {_JMPREL, _PLTRELSZ, _SYMTAB, _STRTAB} <= tags.keys():
        return b"", 0, 0, bias
    size = tags[_PLTRELSZ] - tags[_PLTRELSZ] % _RELA_SIZE
    return ctypes.string_at(tags[_JMPREL], size), tags[_SYMTAB], tags[_STRTAB], bias


def _absolute(tags: dict[int, int], base: int, bias: int) -> dict[int, int]:
    """Glibc adds the load address to the pointers in a writable dynamic section, other libraries leave them."""
    sizes = (_RELASZ, _PLTRELSZ)
    return {tag: value if tag in sizes or value >= base else value + bias for tag, value in tags.items()}


def _segments(base: int) -> tuple[int, int | None]:
    """Load bias, and the address of the dynamic section."""
    header = ctypes.string_at(base, 64)
    if header[:4] != b"\x7fELF" or header[4] != 2:
        return 0, None
    offset, entry_size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
    lowest, dynamic = None, None
    for index in range(count):
        kind, _, _, address = struct.unpack_from("<IIQQ", ctypes.string_at(base + offset + index * entry_size, 24))
        if kind == _PT_LOAD:
            lowest = address if lowest is None else min(lowest, address)
        elif kind == _PT_DYNAMIC:
            dynamic = address
    bias = base - ((lowest or 0) & ~0xFFF)
    return bias, None if dynamic is None else bias + dynamic


def _tags(address: int) -> dict[int, int]:
    tags: dict[int, int] = {}
    while True:
        tag, value = struct.unpack("<QQ", ctypes.string_at(address, 16))
        if tag == 0:
            return tags
        tags[tag] = value
        address += 16


def _read(table: int, size: int, symbols: int, strings: int, bias: int) -> list[Relocation]:
    found = []
    for offset, info, _ in struct.iter_unpack("<QQq", ctypes.string_at(table, size - size % _RELA_SIZE)):
        index = info >> 32
        if index:
            name = struct.unpack("<I", ctypes.string_at(symbols + index * _SYM_SIZE, 4))[0]
            symbol = ctypes.string_at(strings + name).decode("utf-8", "replace")
            found.append(Relocation(address=bias + offset, symbol=symbol, type=info & 0xFFFFFFFF))
    return found
