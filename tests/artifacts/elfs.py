"""Builds small, valid ELF shared objects byte by byte, so that tests need no compiler and can break any part."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

EM_X86_64, EM_AARCH64, EM_CUDA, EM_AMDGPU, EM_S390 = 62, 183, 190, 224, 22
ENTRY_POINTS = (
    "AOTInductorModelContainerCreateWithDevice",
    "AOTInductorModelContainerRun",
    "AOTInductorModelContainerGetNumOutputs",
    "AOTInductorModelContainerDelete",
)
WEAK, GLOBAL = 2, 1


@dataclass
class Undefined:
    name: str
    version: str | None = None
    library: str | None = None
    weak: bool = False


@dataclass
class ElfSpec:
    machine: int = EM_X86_64
    bits: int = 64
    big_endian: bool = False
    type: int = 3
    needed: tuple[str, ...] = ("libtorch_cpu.so", "libc.so.6")
    runpath: str | None = None
    undefined: tuple[Undefined, ...] = (
        Undefined("aoti_torch_empty_strided"),
        Undefined("memcpy", "GLIBC_2.14", "libc.so.6"),
        Undefined("__gmon_start__", weak=True),
    )
    defined: tuple[str, ...] = ENTRY_POINTS
    kernels: tuple[str, ...] = ("cpp_fused_add_0",)
    rodata: bytes = b"AOTI_RUNTIME_CHECK_INPUTS\0"
    constants: bytes | None = b"\1" * 64
    hash: str = "gnu"
    sections: bool = True
    debug_line: bool = True
    extra_segment: tuple[int, int] | None = None
    appended: bytes = b""
    padding: int = field(default=0)


class _Strings:
    def __init__(self) -> None:
        self.data = b"\0"
        self.at: dict[str, int] = {}

    def add(self, text: str) -> int:
        if text not in self.at:
            self.at[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self.at[text]


def build_elf(spec: ElfSpec | None = None, **changes: object) -> bytes:
    """The bytes of a shared object. File offsets equal virtual addresses."""
    spec = spec or ElfSpec(**changes)  # type: ignore[arg-type]
    order = ">" if spec.big_endian else "<"
    wide = spec.bits == 64
    header_size, segment_size, section_size = (64, 56, 64) if wide else (52, 32, 40)
    segments = 2 + (spec.extra_segment is not None)
    strings = _Strings()
    blob = bytearray(header_size + segments * segment_size)
    places: dict[str, tuple[int, int]] = {}

    def place(name: str, data: bytes) -> int:
        while len(blob) % 16:
            blob.append(0)
        places[name] = (len(blob), len(data))
        blob.extend(data)
        return places[name][0]

    place(".rodata", spec.rodata)
    constants_at = place(".lrodata", spec.constants) if spec.constants is not None else 0
    symbols = _symbols(spec, order, strings, constants_at)
    place(".dynsym", symbols)
    count = len(symbols) // (24 if wide else 16)
    versions, indices, libraries = _versions(spec, order, strings, count)
    place(".gnu.version", indices)
    place(".gnu.version_r", versions)
    hash_at = place(".hash", _hash(spec, order, count))
    needed = [strings.add(name) for name in spec.needed]
    runpath = [strings.add(spec.runpath)] if spec.runpath else []
    place(".dynstr", strings.data)
    tags = [(1, offset) for offset in needed] + [(29, offset) for offset in runpath]
    tags += [(5, places[".dynstr"][0]), (6, places[".dynsym"][0]), (10, len(strings.data))]
    tags += [(4 if spec.hash == "sysv" else 0x6FFFFEF5, hash_at)] if spec.hash else []
    tags += [(0x6FFFFFF0, places[".gnu.version"][0])]
    tags += [(0x6FFFFFFE, places[".gnu.version_r"][0]), (0x6FFFFFFF, libraries)] if libraries else []
    place(".dynamic", b"".join(struct.pack(order + ("qQ" if wide else "iI"), *tag) for tag in [*tags, (0, 0)]))
    loaded = len(blob)
    if spec.debug_line:
        place(".debug_line", b"\7" * 32)
    blob.extend(bytes(spec.padding))
    static = _Strings()
    for name in spec.kernels:
        static.add(name)
    place(".strtab", static.data)
    table, table_at, section_count = b"", 0, 0
    if spec.sections:
        table, section_count = _sections(places, blob, order, wide)
        table_at = len(blob)
        blob.extend(table)
    _write_headers(blob, spec, order, places, loaded, table_at, section_count, section_size)
    return bytes(blob) + spec.appended


def _symbols(spec: ElfSpec, order: str, strings: _Strings, constants_at: int) -> bytes:
    rows = [(0, 0, 0, 0)]
    rows += [(strings.add(u.name), (WEAK if u.weak else GLOBAL) << 4, 0, 0) for u in spec.undefined]
    rows += [(strings.add(name), GLOBAL << 4 | 2, 1, 0x100) for name in spec.defined]
    if spec.constants is not None:
        rows.append((strings.add("_binary_constants_bin_start"), GLOBAL << 4, 2, constants_at))
        rows.append((strings.add("_binary_constants_bin_end"), GLOBAL << 4, 2, constants_at + len(spec.constants)))
    if spec.bits == 64:
        return b"".join(struct.pack(order + "IBBHQQ", n, i, 0, s, v, 0) for n, i, s, v in rows)
    return b"".join(struct.pack(order + "IIIBBH", n, v, 0, i, 0, s) for n, i, s, v in rows)


def _versions(spec: ElfSpec, order: str, strings: _Strings, count: int) -> tuple[bytes, bytes, int]:
    libraries: dict[str, list[str]] = {}
    for symbol in spec.undefined:
        if symbol.version is not None and symbol.library is not None:
            versions = libraries.setdefault(symbol.library, [])
            if symbol.version not in versions:
                versions.append(symbol.version)
    numbers: dict[tuple[str, str], int] = {}
    data = b""
    for place, (library, versions) in enumerate(libraries.items()):
        last = place == len(libraries) - 1
        size = 16 + 16 * len(versions)
        data += struct.pack(order + "HHIII", 1, len(versions), strings.add(library), 16, 0 if last else size)
        for index, version in enumerate(versions):
            numbers[library, version] = len(numbers) + 2
            step = 0 if index == len(versions) - 1 else 16
            data += struct.pack(order + "IHHII", 0, 0, numbers[library, version], strings.add(version), step)
    row = [0] + [numbers.get((u.library or "", u.version or ""), 1) for u in spec.undefined]
    row += [1] * (count - len(row))
    return data, struct.pack(f"{order}{count}H", *row), len(libraries)


def _hash(spec: ElfSpec, order: str, count: int) -> bytes:
    if spec.hash == "sysv":
        return struct.pack(order + "II", 1, count) + bytes(4 * (1 + count))
    first = 1 + len(spec.undefined)
    chain = [0] * (count - first)
    if not chain:
        return struct.pack(order + "4I", 1, first, 1, 0) + bytes(spec.bits // 8) + bytes(4)
    chain[-1] = 1
    bloom = bytes(spec.bits // 8)
    return struct.pack(order + "4I", 1, first, 1, 0) + bloom + struct.pack(f"{order}{1 + len(chain)}I", first, *chain)


def _sections(places: dict[str, tuple[int, int]], blob: bytearray, order: str, wide: bool) -> tuple[bytes, int]:
    names = _Strings()
    types = {
        ".dynsym": 11,
        ".strtab": 3,
        ".dynstr": 3,
        ".dynamic": 6,
        ".gnu.version": 0x6FFFFFFF,
        ".gnu.version_r": 0x6FFFFFFE,
    }
    order_of = list(places)
    linked = {".dynsym": ".dynstr", ".dynamic": ".dynstr", ".gnu.version": ".dynsym", ".gnu.version_r": ".dynstr"}
    sizes = {".dynsym": 24 if wide else 16, ".dynamic": 16 if wide else 8, ".gnu.version": 2}
    rows = [(0, 0, 0, 0, 0, 0)]
    for name, (offset, size) in places.items():
        link = order_of.index(linked[name]) + 1 if name in linked else 0
        rows.append((names.add(name), types.get(name, 1), offset, size, link, sizes.get(name, 0)))
    own = names.add(".shstrtab")
    rows.append((own, 3, len(blob), len(names.data), 0, 0))
    blob.extend(names.data)
    form = order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII")
    return b"".join(struct.pack(form, n, t, 0, o, o, s, k, 1, 1, e) for n, t, o, s, k, e in rows), len(rows)


def _write_headers(
    blob: bytearray,
    spec: ElfSpec,
    order: str,
    places: dict[str, tuple[int, int]],
    loaded: int,
    table_at: int,
    section_count: int,
    section_size: int,
) -> None:
    wide = spec.bits == 64
    header_size, segment_size = (64, 56) if wide else (52, 32)
    segments = [(1, 5, 0, loaded), (2, 6, *places[".dynamic"])]
    if spec.extra_segment is not None:
        segments.append((1, 4, *spec.extra_segment))
    ident = b"\x7fELF" + bytes([2 if wide else 1, 2 if spec.big_endian else 1, 1, 0]) + bytes(8)
    form = order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH")
    last = section_count - 1 if section_count else 0
    blob[:header_size] = ident + struct.pack(
        form, spec.type, spec.machine, 1, 0, header_size, table_at, 0,
        header_size, segment_size, len(segments), section_size, section_count, last,
    )  # fmt: skip
    position = header_size
    for kind, flags, offset, size in segments:
        row = (kind, flags, offset, offset, offset, size, size, 16)
        if not wide:
            row = (kind, offset, offset, offset, size, size, flags, 16)
        blob[position : position + segment_size] = struct.pack(order + ("IIQQQQQQ" if wide else "8I"), *row)
        position += segment_size


def build_cubin(sm: int, *, accelerated: bool = False, abi: int = 7, machine: int = EM_CUDA) -> bytes:
    """The header of a cubin (or with ``machine`` EM_AMDGPU and ``sm`` as mach number, of a code object)."""
    flags = sm | (0x800 if accelerated else 0)
    if abi >= 8:
        flags = sm << 8 | (0x8 if accelerated else 0)
    ident = b"\x7fELF" + bytes([2, 1, 1, 0x33, abi]) + bytes(7)
    return ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, 0, flags, 64, 56, 0, 64, 0, 0)


def build_fatbin(*entries: tuple[str, int, bytes]) -> bytes:
    """A fatbin of ``("ptx" | "elf", capability, payload)`` entries."""
    body = b""
    for kind, capability, payload in entries:
        head = struct.pack("<HHIQQII", 1 if kind == "ptx" else 2, 0x101, 64, len(payload), 0, 0, capability)
        body += head.ljust(64, b"\0") + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
