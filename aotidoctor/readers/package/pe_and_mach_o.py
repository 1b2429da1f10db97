"""Read the libraries of Windows (PE) and macOS (Mach-O) in place: what their loaders read, and the texts in them.

Layouts: Microsoft's "PE Format", Apple's ``mach-o/loader.h`` and ``mach-o/nlist.h``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.artifact import SharedObject, SymbolRef
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob

ENTRY_POINT = "AOTInductor"
_PE_MACHINES = {0x8664: "AMD64", 0xAA64: "ARM64", 0x014C: "x86"}
_MACHO_CPUS = {0x01000007: "x86_64", 0x0100000C: "arm64"}
_KERNEL = re.compile(r"_*(cpp_fused_\w+)")
_LARGEST_NAMES = 8 << 20


@record
class FileSpan:
    """Bytes of a library: a section by its name, the address where it is loaded, its place and size in the file."""

    name: str
    address: int
    offset: int
    size: int


# A Windows library: section headers of 40 bytes, import descriptors of 20, names as addresses of 4.
_MOST_PE_SECTIONS, _MOST_DLLS, _MOST_SYMBOLS = 96, 64, 65536
_PE_32, _PE_64 = 0x010B, 0x020B


@record
class _PeHeader:
    """``exports`` and ``imports`` are addresses, 0 without."""

    machine: int
    form: int
    exports: int
    imports: int
    sections: tuple[FileSpan, ...]

    def read(self, blob: Blob, address: int, size: int) -> bytes:
        """At most ``size`` bytes at an address, which end with their section; none outside of all."""
        for one in self.sections:
            if one.address <= address < one.address + one.size:
                past = address - one.address
                return blob.read_at(one.offset + past, min(size, one.size - past))
        return b""

    def text(self, blob: Blob, address: int) -> str:
        """The text that begins at an address, up to its zero byte."""
        return self.read(blob, address, 512).partition(b"\0")[0].decode("ascii", "backslashreplace")


def _pe_header(blob: Blob) -> _PeHeader:
    coff = int.from_bytes(blob.read_at(60, 4), "little") + 4
    machine, count, optional = struct.unpack("<HH12xH", blob.read_at(coff, 18).ljust(18, b"\0"))
    head = blob.read_at(coff + 20, min(optional, 256)).ljust(128, b"\0")
    form = int.from_bytes(head[:2], "little")
    exports, imports = struct.unpack_from("<I4xI", head, 112) if form == _PE_64 else (0, 0)
    table = blob.read_at(coff + 20 + optional, 40 * min(count, _MOST_PE_SECTIONS))
    rows = struct.iter_unpack("<8s4I16x", table[: len(table) // 40 * 40])
    sections = tuple(
        FileSpan(name=name.rstrip(b"\0").decode("ascii", "replace"), address=at, offset=start, size=size)
        for name, _, at, size, start in rows
    )
    return _PeHeader(machine=machine, form=form, exports=exports, imports=imports, sections=sections)


def read_pe(blob: Blob, base: SharedObject) -> SharedObject:
    """A library of Windows: machine, word size, imports by library, entry points, kernels, and a cut."""
    header = _pe_header(blob)
    end = max((one.offset + one.size for one in header.sections), default=0)
    known = replace(
        base,
        machine=_PE_MACHINES.get(header.machine, hex(header.machine)),
        bits={_PE_32: 32, _PE_64: 64}.get(header.form),
        truncated_at=blob.size if end > blob.size else None,
        problem=f"cut at {blob.size} bytes: a section ends at {end}" if end > blob.size else None,
    )
    libraries: list[str] = []
    imported: list[SymbolRef] = []
    for number in range(_MOST_DLLS if header.imports else 0):
        row = header.read(blob, header.imports + 20 * number, 20).ljust(20, b"\0")
        names, _, _, library, table = struct.unpack("<5I", row)
        if not library:
            break
        libraries.append(header.text(blob, library))
        entries = header.read(blob, names or table, 8 * _MOST_SYMBOLS)
        for (entry,) in struct.iter_unpack("<Q", entries[: len(entries) // 8 * 8]):
            if entry == 0 or len(imported) >= _MOST_SYMBOLS:
                break
            # The highest bit marks a function without a name.
            if entry >> 63 == 0:
                imported.append(SymbolRef(name=header.text(blob, entry + 2), library=libraries[-1]))
    exported = _pe_exports(blob, header)
    return replace(
        known,
        type="dyn" if header.exports else None,
        needed=tuple(libraries),
        undefined=tuple(imported),
        defined_entry_points=tuple(sorted(name for name in exported if name.startswith(ENTRY_POINT))),
        kernel_symbols=_kernels(exported),
    )


def _pe_exports(blob: Blob, header: _PeHeader) -> list[str]:
    if not header.exports:
        return []
    count, _, names = struct.unpack("<3I", header.read(blob, header.exports + 24, 12).ljust(12, b"\0"))
    table = header.read(blob, names, 4 * min(count, _MOST_SYMBOLS))
    return [header.text(blob, at) for (at,) in struct.iter_unpack("<I", table[: len(table) // 4 * 4])]


# A macOS library: load commands after the header, sections of 80 bytes, and a table of symbols of 16 bytes each.
_MOST_COMMANDS, _LARGEST_COMMANDS = 1024, 1 << 20
_LC_SYMTAB, _LC_SEGMENT, _LC_SIGNATURE = 0x2, 0x19, 0x1D
_LC_RPATH, _LC_BUILD_VERSION, _LC_VERSION_MIN = 0x1C, 0x32, 0x24
_LC_LOADS = frozenset((0xC, 0x18, 0x1F, 0x20, 0x23))
_MACHO_64 = b"\xcf\xfa\xed\xfe"


def read_mach_o(blob: Blob, base: SharedObject) -> SharedObject:
    """A thin library of macOS, or the first slice of a universal one, whose machines are all listed."""
    try:
        if (slices := _slices(blob)) is None:
            return _read_thin(blob, base)
        machines = tuple(_MACHO_CPUS.get(cpu, hex(cpu)) for cpu, _, _ in slices)
        base = replace(base, machine=machines[0] if machines else None, machines=machines)
        return replace(_read_thin(blob.part(*slices[0][1:]), base), machines=machines)
    except (IndexError, struct.error):
        where = "its first slice is" if base.machines else "its header is"
        return replace(base, problem=f"Mach-O: {where} cut")


def _slices(blob: Blob) -> list[tuple[int, int, int]] | None:
    """Machine, place and size of each library of a universal one; None for a thin one. Raises struct.error."""
    if blob.read_at(0, 4) != b"\xca\xfe\xba\xbe":
        return None
    (count,) = struct.unpack(">I", blob.read_at(4, 4))
    return [struct.unpack(">I4x2I4x", blob.read_at(8 + 20 * at, 20)) for at in range(min(count, 19))]


@record(frozen=False)
class _LoadCommands:
    """What the load commands state."""

    needed: list[str]
    paths: list[str]
    sections: list[FileSpan]
    symbols: tuple[int, ...] = (0, 0, 0, 0)
    least: str | None = None
    signed: bool = False
    end: int = 0


def _commands(blob: Blob) -> _LoadCommands:
    """Raises struct.error where a command is cut."""
    count, size = struct.unpack("<II", blob.read_at(16, 8))
    commands = blob.read_at(32, min(size, _LARGEST_COMMANDS))
    found = _LoadCommands(needed=[], paths=[], sections=[])
    at = 0
    for _ in range(min(count, _MOST_COMMANDS)):
        kind, length = struct.unpack_from("<II", commands, at)
        # The highest bit says that the loader must know the command.
        kind &= 0x7FFFFFFF
        if kind in _LC_LOADS or kind == _LC_RPATH:
            (start,) = struct.unpack_from("<I", commands, at + 8)
            name = commands[at + start : at + length].partition(b"\0")[0].decode("utf-8", "backslashreplace")
            (found.paths if kind == _LC_RPATH else found.needed).append(name)
        elif kind in (_LC_BUILD_VERSION, _LC_VERSION_MIN):
            (version,) = struct.unpack_from("<I", commands, at + (12 if kind == _LC_BUILD_VERSION else 8))
            found.least = f"{version >> 16}.{version >> 8 & 0xFF}"
        elif kind == _LC_SYMTAB:
            found.symbols = struct.unpack_from("<4I", commands, at + 8)
        elif kind == _LC_SEGMENT:
            start, held, _, _, sections = struct.unpack_from("<2Q3I", commands, at + 40)
            found.end = max(found.end, start + held)
            rows = commands[at + 72 : at + length][: 80 * sections]
            found.sections += [
                FileSpan(
                    name=name.rstrip(b"\0").decode("ascii", "replace"), address=address, offset=offset, size=covered
                )
                for name, address, covered, offset in struct.iter_unpack("<16s16x2QI28x", rows[: len(rows) // 80 * 80])
            ]
        found.signed = found.signed or kind == _LC_SIGNATURE
        if length < 8:
            break
        at += length
    return found


def _read_thin(blob: Blob, base: SharedObject) -> SharedObject:
    # The first number is in the byte order of the file.
    order = ">" if blob.read_at(0, 2) == b"\xfe\xed" else "<"
    (cpu,) = struct.unpack(f"{order}I", blob.read_at(4, 4))
    known = replace(base, machine=_MACHO_CPUS.get(cpu, hex(cpu)), bits=64 if cpu & 0x01000000 else 32)
    if blob.read_at(0, 4) != _MACHO_64:
        return known
    commands = _commands(blob)
    undefined, defined = _mach_o_symbols(blob, commands.symbols, commands.needed)
    is_cut = commands.end > blob.size
    return replace(
        known,
        type="dyn",
        needed=tuple(commands.needed),
        runpath=tuple(commands.paths),
        undefined=undefined,
        defined_entry_points=tuple(sorted(name for name in defined if name.startswith(ENTRY_POINT))),
        kernel_symbols=_kernels(defined),
        least_system=commands.least,
        signed=commands.signed,
        truncated_at=blob.size if is_cut else None,
        problem=f"cut at {blob.size} bytes: a segment that must be loaded ends at {commands.end}" if is_cut else None,
    )


def _mach_o_symbols(
    blob: Blob, table: tuple[int, ...], libraries: Sequence[str]
) -> tuple[tuple[SymbolRef, ...], list[str]]:
    """The symbols that come from elsewhere and the names of those that it exports, without the underscore of C."""
    start, count, strings, size = table
    texts = blob.read_at(strings, min(size, _LARGEST_NAMES))
    undefined, defined = [], []
    rows = blob.read_at(start, 16 * min(count, _MOST_SYMBOLS))
    for name_at, kind, _, about, _ in struct.iter_unpack("<IBBHQ", rows[: len(rows) // 16 * 16]):
        # Debugging entries, and what is not visible outside.
        if kind & 0xE0 or not kind & 1:
            continue
        end = texts.find(b"\0", name_at)
        name = texts[name_at : max(end, name_at)].decode("utf-8", "backslashreplace").removeprefix("_")
        if kind & 0x0E:
            defined.append(name)
        else:
            number = about >> 8
            library = libraries[number - 1] if 0 < number <= len(libraries) else None
            undefined.append(SymbolRef(name=name, library=library, weak=bool(about & 0x40)))
    return tuple(undefined), defined


def _kernels(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found[1] for name in names if (found := _KERNEL.fullmatch(name)) is not None))


def text_spans(blob: Blob) -> list[FileSpan]:
    """The sections that hold the texts of a PE or Mach-O library; those of the first slice of a universal one."""
    if blob.read_at(0, 2) == b"MZ":
        return [one for one in _pe_header(blob).sections if one.name.startswith(".rdata")]
    shift = 0
    try:
        if slices := _slices(blob):
            _, shift, size = slices[0]
            blob = blob.part(shift, size)
        names = ("__cstring", "__const")
        found = _commands(blob).sections if blob.read_at(0, 4) == _MACHO_64 else []
    except struct.error:
        return []
    return [replace(one, offset=one.offset + shift) for one in found if one.name in names]
