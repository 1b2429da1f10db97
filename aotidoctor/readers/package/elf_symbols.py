"""Read the dynamic section and the symbols of an ELF shared object, through program headers as the loader does.

The symbols tell what it imports, which AOTI entry points and kernels it has, and where its constants are. Tables are
read in one piece and unpacked by ``struct``: an object for every symbol would take ten times as long, and only a few
names matter.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping

from aotidoctor.model.artifact import SymbolRef
from aotidoctor.model.record import record
from aotidoctor.readers.package.elf import PT_DYNAMIC, SHT_DYNSYM, Elf, ElfError

# Dynamic section: needed libraries, run paths, versions, tables.
_NEEDED, _HASH, _STRTAB, _SYMTAB, _STRSZ = 1, 4, 5, 6, 10
_RPATH, _RUNPATH, _GNU_HASH = 15, 29, 0x6FFFFEF5
_VERSYM, _VERNEED, _VERNEEDNUM = 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF

_MAX_DYNAMIC = 1 << 20
_MAX_STRINGS = 64 << 20
_MAX_BUCKETS = 1 << 20
MAX_SYMBOLS = 1 << 20


@record
class Dynamic:
    """The dynamic section of one object.

    ``strings`` is the string table, ``versions`` maps a version index to ``(version, library)``, ``version_indices``
    has one index per symbol (empty when there are no versions). ``symbols_at`` is a virtual address.
    """

    needed: tuple[str, ...]
    runpath: tuple[str, ...]
    strings: bytes
    symbols_at: int
    symbol_count: int
    versions: Mapping[int, tuple[str, str]]
    version_indices: tuple[int, ...]


def read_dynamic(elf: Elf) -> Dynamic:
    """Read the dynamic section. Raises ``ElfError`` when it is absent or leads out of the file."""
    tags = _read_tags(elf)
    strings_at, symbols_at = _one(tags, _STRTAB), _one(tags, _SYMTAB)
    strings = elf.read_vaddr(strings_at, min(_one(tags, _STRSZ), _MAX_STRINGS))
    if not strings or elf.file_offset(symbols_at) is None:
        raise ElfError("the dynamic section names a string or symbol table that is not in the file")
    count = _symbol_count(elf, tags)
    runpath = [string_at(strings, offset) for offset in tags.get(_RUNPATH) or tags.get(_RPATH) or []]
    indices: tuple[int, ...] = ()
    if _VERSYM in tags:
        data = elf.read_vaddr(tags[_VERSYM][0], 2 * count)
        indices = struct.unpack(f"{elf.order}{len(data) // 2}H", data[: len(data) // 2 * 2])
    return Dynamic(
        needed=tuple(string_at(strings, offset) for offset in tags.get(_NEEDED, ())),
        runpath=tuple(path for text in runpath for path in text.split(":") if path),
        strings=strings,
        symbols_at=symbols_at,
        symbol_count=count,
        versions=_read_versions(elf, tags, strings),
        version_indices=indices,
    )


def string_at(strings: bytes, offset: int) -> str:
    """The zero-terminated string at an offset; empty when the offset is outside."""
    end = strings.find(b"\0", offset)
    return strings[offset:end].decode("utf-8", "backslashreplace") if 0 <= offset <= end else ""


def _read_tags(elf: Elf) -> dict[int, list[int]]:
    segment = next((segment for segment in elf.segments if segment.type == PT_DYNAMIC), None)
    if segment is None:
        raise ElfError("no dynamic section")
    data = elf.blob.read_at(segment.offset, min(segment.filesz, _MAX_DYNAMIC))
    form = struct.Struct(elf.order + ("qQ" if elf.bits == 64 else "iI"))
    tags: dict[int, list[int]] = {}
    for tag, value in form.iter_unpack(data[: len(data) // form.size * form.size]):
        if tag == 0:
            return tags
        tags.setdefault(tag, []).append(value)
    raise ElfError("the dynamic section has no end")


def _one(tags: Mapping[int, list[int]], tag: int) -> int:
    if tag not in tags:
        raise ElfError(f"the dynamic section lacks tag {tag}")
    return tags[tag][0]


def _symbol_count(elf: Elf, tags: Mapping[int, list[int]]) -> int:
    """The dynamic section does not say how many symbols there are; the hash tables do."""
    if _HASH in tags:
        data = elf.read_vaddr(tags[_HASH][0], 8)
        if len(data) == 8:
            return min(int(struct.unpack(f"{elf.order}2I", data)[1]), MAX_SYMBOLS)
    if _GNU_HASH in tags:
        return _count_by_gnu_hash(elf, tags[_GNU_HASH][0])
    section = next((section for section in elf.sections if section.type == SHT_DYNSYM), None)
    size = 24 if elf.bits == 64 else 16
    return min(section.size // size, MAX_SYMBOLS) if section is not None else 0


def _count_by_gnu_hash(elf: Elf, table: int) -> int:
    head = elf.read_vaddr(table, 16)
    if len(head) < 16:
        raise ElfError("the GNU hash table is not in the file")
    bucket_count, first, bloom_words, _ = struct.unpack(f"{elf.order}4I", head)
    if bucket_count > _MAX_BUCKETS or bloom_words > _MAX_BUCKETS:
        raise ElfError(f"the GNU hash table claims {bucket_count} buckets")
    buckets_at = table + 16 + bloom_words * elf.bits // 8
    data = elf.read_vaddr(buckets_at, 4 * bucket_count)
    last: int = max(struct.unpack(f"{elf.order}{len(data) // 4}I", data[: len(data) // 4 * 4]), default=0)
    if last < first:
        return min(int(first), MAX_SYMBOLS)
    # The last chain ends at the first entry whose lowest bit is set.
    chain = elf.read_vaddr(buckets_at + 4 * (bucket_count + last - first), 4 << 16)
    for (value,) in struct.iter_unpack(f"{elf.order}I", chain[: len(chain) // 4 * 4]):
        last += 1
        if value & 1:
            break
    return min(last, MAX_SYMBOLS)


def _read_versions(elf: Elf, tags: Mapping[int, list[int]], strings: bytes) -> dict[int, tuple[str, str]]:
    """``.gnu.version_r``: version index to the version's name and the library it must come from."""
    found: dict[int, tuple[str, str]] = {}
    if _VERNEED not in tags:
        return found
    for at, (_, count, file, first, _) in _linked(elf, tags[_VERNEED][0], "2H3I", _one(tags, _VERNEEDNUM)):
        library = string_at(strings, file)
        for _, (_, _, index, name, _) in _linked(elf, at + first, "I2H2I", count):
            found[index & 0x7FFF] = (string_at(strings, name), library)
    return found


def _linked(elf: Elf, position: int, form: str, count: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Rows of 16 bytes with their places; the last number of each is the distance to the next one."""
    for _ in range(min(count, 4096)):
        data = elf.read_vaddr(position, 16)
        if len(data) < 16:
            raise ElfError("the version requirements lead out of the file")
        row = struct.unpack(elf.order + form, data)
        yield position, row
        if row[-1] == 0:
            return
        position += row[-1]


# Symbols.
_WEAK = 2
_MAX_SYMBOL_STRINGS = 64 << 20
_ENTRY_POINT = b"AOTInductor"
_CONSTANTS = (b"_binary_constants_bin_start\0", b"_binary_constants_bin_end\0")
_KERNEL = re.compile(rb"\0((?:cpp|triton)_\w+)(?=\0)")
_MANGLED_CALL = re.compile(rb"\0_Z(\d+)call_(triton_\w+)(?=\0)")
# A kernel whose code was linked in as a file of its own.
_EMBEDDED = re.compile(rb"\0__(triton_\w+)_start(?=\0)")


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
                which = dynamic.version_indices[index] & 0x7FFF if index < len(dynamic.version_indices) else 0
                version, library = dynamic.versions.get(which, (None, None))
                weak = info >> 4 == _WEAK
                undefined.append(SymbolRef(name=string_at(strings, name), version=version, library=library, weak=weak))
        elif strings.startswith(_ENTRY_POINT, name):
            entry_points.append(string_at(strings, name))
        else:
            constants |= {end: value for end, text in enumerate(_CONSTANTS) if strings.startswith(text, name)}
    span = (constants[0], constants[1]) if len(constants) == 2 else None
    return DynamicSymbols(undefined=tuple(undefined), entry_points=tuple(sorted(entry_points)), constants_at=span)


def read_kernel_symbols(elf: Elf, dynamic: Dynamic) -> tuple[str, ...]:
    """Names of generated kernels, from the string table of ``.symtab`` or, when stripped, of ``.dynsym``.

    CUDA packages have no symbol called like the kernel, but a mangled ``call_<kernel>`` template for each, and where
    its code is linked in, ``__<kernel>_start``.
    """
    section = elf.section(".strtab")
    strings = dynamic.strings
    if section is not None and section.size <= _MAX_SYMBOL_STRINGS:
        strings = elf.blob.read_at(section.offset, section.size)
    names = {name.decode("ascii") for name in _KERNEL.findall(strings) + _EMBEDDED.findall(strings)}
    for length, text in _MANGLED_CALL.findall(strings):
        # The number is the length of the name, "call_" included; template arguments follow.
        names.add(text[: max(int(length[:6]) - 5, 0)].decode("ascii"))
    return tuple(sorted(name for name in names if name))


def exported_names(elf: Elf, dynamic: Dynamic, part: str) -> tuple[str, ...]:
    """The names that the object exports and that hold ``part``, sorted."""
    defined = (string_at(dynamic.strings, offset) for offset, _, section, _ in _rows(elf, dynamic) if section)
    return tuple(sorted({name for name in defined if part in name}))


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
