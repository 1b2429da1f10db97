"""Read the facts of a shared object in place: ELF in full, of PE machine and imports, of Mach-O what its loader reads.

Debug facilities are compiled in and cannot be switched on afterwards, so it matters which are there. Imported shims
tell most; strings of the read-only data tell the rest (the printer's level 3 only calls ``printf``).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.artifact import DebugFeatures, SharedObject, SymbolRef
from aotidoctor.model.printer_lines import LAUNCH_MARK
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob, opened_blob
from aotidoctor.readers.package.elf import DAMAGED, PT_LOAD, SHT_NOBITS, SHT_NULL, Elf, read_elf
from aotidoctor.readers.package.elf_symbols import (
    exported_names,
    read_dynamic,
    read_dynamic_symbols,
    read_kernel_symbols,
)
from aotidoctor.readers.package.package_layout import object_format

# Debug facilities compiled into the object.
_SCAN_LIMIT = 16 << 20
_CHECKS = b"AOTI_RUNTIME_CHECK_INPUTS\0"
_LAUNCH = LAUNCH_MARK.encode()


def read_features(elf: Elf, undefined: Sequence[SymbolRef]) -> DebugFeatures:
    """Features of one object; None for those that need strings where there are none."""
    names = {symbol.name for symbol in undefined}
    text = _read_only_data(elf)
    level = None if text is None else 3 if _LAUNCH in text else 0
    if "aoti_torch_print_tensor_handle" in names:
        level = 2
    elif "aoti_torch_save_tensor_handle" in names:
        level = 1
    return DebugFeatures(
        input_checks=None if text is None else _CHECKS in text,
        printer_level=level,
        nan_asserts="aoti_torch_check_inf_and_nan" in names,
        kernel_profile=any("record_function" in name for name in names),
    )


def has_debug_lines(elf: Elf) -> bool:
    """Whether the object has source lines (``.debug_line``, also compressed)."""
    return elf.section(".debug_line") is not None or elf.section(".zdebug_line") is not None


def _read_only_data(elf: Elf) -> bytes | None:
    """``.rodata``, or without section headers every small segment. Never the weights, which have their own section."""
    section = elf.section(".rodata")
    if section is not None:
        return elf.blob.read_at(section.offset, section.size) if section.size <= _SCAN_LIMIT else None
    parts = [
        elf.blob.read_at(segment.offset, segment.filesz)
        for segment in elf.segments
        if segment.type == PT_LOAD and segment.filesz <= _SCAN_LIMIT
    ]
    return b"".join(parts) if parts else None


# The object. Appended (mmapped) weights: the embedded constants are then 16 bytes, the length of the weights and a
# random number that is repeated as the last 8 bytes of the file.
MMAP_SPAN = 16
# Compilers pad code with no-op instructions; so many zero bytes in a row are a hole that a broken copy left.
BLANK_RUN = 512
LARGEST_CODE = 32 * 1024 * 1024

_PE_MACHINES = {0x8664: "AMD64", 0xAA64: "ARM64", 0x014C: "x86"}
_MACHO_CPUS = {0x01000007: "x86_64", 0x0100000C: "arm64"}


def read_shared_object(blob: Blob, member: str) -> SharedObject:
    """Read one shared object. Damage does not raise: ``problem`` describes it."""
    head = blob.read_at(0, 4096)
    form = object_format(head)
    base = SharedObject(member=member, format=form or "unknown", size=blob.size)
    match form:
        case "elf":
            return _read_elf_object(blob, base)
        case "pe":
            return _read_pe(blob, base)
        case "macho":
            try:
                return _read_macho(blob, base)
            except struct.error:
                return replace(base, problem="Mach-O header: cut")
    return replace(base, problem=f"not a shared object: begins with {head[:8].hex(' ') or 'nothing'}")


# A Windows library: section headers of 40 bytes, import descriptors of 20.
_MOST_PE_SECTIONS, _MOST_DLLS, _MOST_IMPORTS = 96, 64, 4096


def _pe_sections(blob: Blob) -> tuple[int, int, list[tuple[bytes, int, int, int]]]:
    """Machine, address of the imports (0 without), and sections as ``(name, address, offset, size)``."""
    coff = int.from_bytes(blob.read_at(60, 4), "little") + 4
    machine, count, optional = struct.unpack("<HH12xH", blob.read_at(coff, 18).ljust(18, b"\0"))
    head = blob.read_at(coff + 20, min(optional, 256))
    imports = int.from_bytes(head[120:124], "little")
    table = blob.read_at(coff + 20 + optional, 40 * min(count, _MOST_PE_SECTIONS))
    rows = struct.iter_unpack("<8s4I16x", table[: len(table) // 40 * 40])
    # 64-bit ones only.
    return (
        machine,
        imports if head.startswith(b"\x0b\x02") else 0,
        [(name, at, start, size) for name, _, at, size, start in rows],
    )


def _read_pe(blob: Blob, base: SharedObject) -> SharedObject:
    machine, imports, sections = _pe_sections(blob)

    def data(address: int, size: int) -> bytes:
        inside = ((at, start, length) for _, at, start, length in sections if at <= address < at + length)
        at, start, length = next(inside, (address, 0, 0))
        return blob.read_at(start + address - at, min(size, length - (address - at)))

    def text(address: int) -> str:
        return data(address, 512).partition(b"\0")[0].decode("ascii", "backslashreplace")

    libraries: list[str] = []
    wanted: list[SymbolRef] = []
    for number in range(_MOST_DLLS if imports else 0):
        names, _, _, library, table = struct.unpack("<5I", data(imports + 20 * number, 20).ljust(20, b"\0"))
        if not library:
            break
        libraries.append(text(library))
        entries = data(names or table, 8 * _MOST_IMPORTS)
        for (entry,) in struct.iter_unpack("<Q", entries[: len(entries) // 8 * 8]):
            if entry == 0 or len(wanted) >= _MOST_IMPORTS:
                break
            # The highest bit tells a function without a name.
            if entry >> 63 == 0:
                wanted.append(SymbolRef(name=text(entry + 2), library=libraries[-1]))
    return replace(
        base,
        machine=_PE_MACHINES.get(machine, hex(machine)),
        bits=64 if imports else None,
        needed=tuple(libraries),
        undefined=tuple(wanted),
    )


# A macOS library: load commands after the header, and a table of symbols of 16 bytes each.
_MOST_COMMANDS, _LARGEST_COMMANDS, _MOST_SYMBOLS = 1024, 1 << 20, 65536
_LC_SYMTAB, _LC_RPATH, _LC_BUILD_VERSION, _LC_SIGNATURE = 0x2, 0x1C, 0x32, 0x1D
_LC_LOADS = frozenset((0xC, 0x18, 0x1F, 0x20, 0x23))
_MACHO_64 = b"\xcf\xfa\xed\xfe"
_ENTRY_POINT = "_AOTInductor"


def _read_macho(blob: Blob, base: SharedObject) -> SharedObject:
    """A thin file, or the first slice of a universal one, whose machines are all listed. Raises struct.error."""
    if blob.read_at(0, 4) == b"\xca\xfe\xba\xbe":
        (count,) = struct.unpack(">I", blob.read_at(4, 4))
        slices = [struct.unpack(">5I", blob.read_at(8 + 20 * at, 20)) for at in range(min(count, 19))]
        machines = tuple(_MACHO_CPUS.get(cpu, hex(cpu)) for cpu, *_ in slices)
        known = replace(base, machine=machines[0] if machines else None, machines=machines)
        try:
            return replace(_read_thin(blob.part(*slices[0][2:4]), known), machines=machines)
        except (IndexError, struct.error):
            return replace(known, problem="Mach-O: its first slice is cut")
    return _read_thin(blob, base)


def _read_thin(blob: Blob, base: SharedObject) -> SharedObject:
    # The first number is in the byte order of the file.
    order = ">" if blob.read_at(0, 2) == b"\xfe\xed" else "<"
    (cpu,) = struct.unpack(f"{order}I", blob.read_at(4, 4))
    known = replace(base, machine=_MACHO_CPUS.get(cpu, hex(cpu)), bits=64 if cpu & 0x01000000 else 32)
    if blob.read_at(0, 4) != _MACHO_64:
        return known
    count, size = struct.unpack("<II", blob.read_at(16, 8))
    commands = blob.read_at(32, min(size, _LARGEST_COMMANDS))
    needed: list[str] = []
    paths: list[str] = []
    least, is_signed, symbols = None, False, (0, 0, 0, 0)
    at = 0
    for _ in range(min(count, _MOST_COMMANDS)):
        kind, length = struct.unpack_from("<II", commands, at)
        # The highest bit says that the loader must know the command.
        kind &= 0x7FFFFFFF
        if kind in _LC_LOADS or kind == _LC_RPATH:
            (start,) = struct.unpack_from("<I", commands, at + 8)
            name = commands[at + start : at + length].partition(b"\0")[0].decode("utf-8", "backslashreplace")
            (paths if kind == _LC_RPATH else needed).append(name)
        elif kind == _LC_BUILD_VERSION:
            (version,) = struct.unpack_from("<I", commands, at + 12)
            least = f"{version >> 16}.{version >> 8 & 0xFF}"
        elif kind == _LC_SYMTAB:
            symbols = struct.unpack_from("<4I", commands, at + 8)
        is_signed = is_signed or kind == _LC_SIGNATURE
        if length < 8:
            break
        at += length
    undefined, defined = _macho_symbols(blob, symbols, needed)
    return replace(
        known,
        type="dyn",
        needed=tuple(needed),
        runpath=tuple(paths),
        undefined=undefined,
        defined_entry_points=tuple(name[1:] for name in defined if name.startswith(_ENTRY_POINT)),
        least_system=least,
        signed=is_signed,
    )


def _macho_symbols(
    blob: Blob, table: tuple[int, ...], libraries: Sequence[str]
) -> tuple[tuple[SymbolRef, ...], list[str]]:
    """The symbols that come from elsewhere, without the underscore of C, and the names of those that it exports."""
    start, count, strings, size = table
    texts = blob.read_at(strings, min(size, LARGEST))
    undefined, defined = [], []
    rows = blob.read_at(start, 16 * min(count, _MOST_SYMBOLS))
    for name_at, kind, _, about, _ in struct.iter_unpack("<IBBHQ", rows[: len(rows) // 16 * 16]):
        # Debugging entries, and what is not visible outside.
        if kind & 0xE0 or not kind & 1:
            continue
        end = texts.find(b"\0", name_at)
        name = texts[name_at : max(end, name_at)].decode("utf-8", "backslashreplace")
        if kind & 0x0E:
            defined.append(name)
        else:
            number = about >> 8
            library = libraries[number - 1] if 0 < number <= len(libraries) else None
            undefined.append(SymbolRef(name=name.removeprefix("_"), library=library, weak=bool(about & 0x40)))
    return tuple(undefined), defined


def _read_elf_object(blob: Blob, base: SharedObject) -> SharedObject:
    try:
        elf = read_elf(blob)
    except DAMAGED as error:
        return replace(base, problem=f"ELF header: {error}")
    size, problem = _find_cut(elf)
    known = replace(
        base,
        machine=elf.machine,
        bits=elf.bits,
        type=elf.type,
        truncated_at=size,
        problem=problem,
        has_debug_lines=has_debug_lines(elf),
        executable_stack=elf.executable_stack,
    )
    if elf.type != "dyn":
        return replace(known, problem=problem or f"an ELF file of type {elf.type}, not a shared object")
    try:
        return _with_dynamic(elf, known)
    except DAMAGED as error:
        return replace(known, problem=problem or f"ELF dynamic section: {error}")


def _with_dynamic(elf: Elf, known: SharedObject) -> SharedObject:
    dynamic = read_dynamic(elf)
    symbols = read_dynamic_symbols(elf, dynamic)
    span = None if symbols.constants_at is None else symbols.constants_at[1] - symbols.constants_at[0]
    found = replace(
        known,
        needed=dynamic.needed,
        runpath=dynamic.runpath,
        undefined=symbols.undefined,
        defined_entry_points=symbols.entry_points,
        kernel_symbols=read_kernel_symbols(elf, dynamic),
        constants_span=span,
        features=read_features(elf, symbols.undefined),
    )
    if found.problem is None:
        found = replace(found, problem=_blank_code(elf))
    if found.problem is None and symbols.constants_at is not None and span == MMAP_SPAN:
        constants_at = symbols.constants_at[0]
        length, magic = struct.unpack(f"{elf.order}2Q", elf.read_vaddr(constants_at, MMAP_SPAN).ljust(MMAP_SPAN, b"\0"))
        last = elf.blob.read_at(max(elf.blob.size - 8, 0), 8)
        # 16 bytes of real constants would not look like a small number followed by a huge one.
        if last == struct.pack(f"{elf.order}Q", magic) or not (8 < length < 1 << 48 and magic >= 1 << 32):
            return found
        words = (
            f"the {length} bytes of weights appended to it do not end with their marker: cut, or something was added"
        )
        return replace(found, truncated_at=elf.blob.size, problem=words)
    return found


def _blank_code(elf: Elf) -> str | None:
    """A description of machine code that was overwritten with zeros (a hole in a copied file); None without any."""
    for section in elf.sections:
        if section.name == ".text" and section.size <= LARGEST_CODE:
            at = elf.blob.read_at(section.offset, section.size).find(bytes(BLANK_RUN))
            return (
                None if at < 0 else f"its code contains only zeros from byte {section.offset + at} of the object onward"
            )
    return None


def _find_cut(elf: Elf) -> tuple[int | None, str | None]:
    """The size of a file that was cut, and the problem: None where it still loads.

    Segments beyond the end: it cannot load. Only sections beyond the end: it loads, debug information is lost.
    """
    size = elf.blob.size
    loads = [segment for segment in elf.segments if segment.type == PT_LOAD]
    end = max((segment.offset + segment.filesz for segment in loads), default=0)
    if end > size:
        return size, f"cut at {size} bytes: a segment that must be loaded ends at {end}"
    if not loads and elf.type == "dyn":
        return None, "nothing to load: no PT_LOAD segment"
    if any(segment.filesz > segment.memsz for segment in loads):
        return None, "a segment is larger in the file than in memory"
    sections = (s.offset + s.size for s in elf.sections if s.type not in {SHT_NOBITS, SHT_NULL})
    if elf.sections_problem is not None or max(sections, default=0) > size:
        return size, None
    return None, None


# Symbols whose names hold a given text.
_LARGEST_STRINGS = 64 << 20


@record
class NamedSymbols:
    """``exported`` are names that the dynamic loader finds; ``hidden`` are names of the object that it does not."""

    compiled: SharedObject
    exported: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def read_named_symbols(path: str, part: str) -> NamedSymbols:
    """Read the object at ``path``. Raises ``OSError``; damage does not raise: ``compiled.problem`` describes it."""
    with opened_blob(path) as (blob, _):
        compiled = read_shared_object(blob, Path(path).name)
        if compiled.format != "elf" or compiled.problem:
            return NamedSymbols(compiled=compiled)
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


# Texts: what read-only sections hold between zero bytes.
# Weights may lie in such a section too, and are not looked through.
LARGEST = 8 << 20


def read_texts(blob: Blob) -> Iterator[bytes]:
    """The texts of a library, ELF or PE, in order; none of another file."""
    try:
        if blob.read_at(0, 2) == b"MZ":
            spots = [(start, size) for name, _, start, size in _pe_sections(blob)[2] if name.startswith(b".rdata")]
        else:
            spots = [(one.offset, one.size) for one in read_elf(blob).sections if one.name.startswith(".rodata")]
    except DAMAGED:
        return
    for start, size in spots:
        if size <= LARGEST:
            yield from blob.read_at(start, size).split(b"\0")
