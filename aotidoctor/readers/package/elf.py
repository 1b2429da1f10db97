"""Parse ELF headers: of an object in a package, at any place of any file, and of this host's libraries.

Only headers are read here. What the dynamic loader needs is found as the loader finds it, through program headers: a
``.so`` that lost its section headers (cut short) still loads and must still be read. Apart from ``elf_symbols``
because ``--help`` imports it.
"""

from __future__ import annotations

import struct

from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob

PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
SHT_NULL, SHT_NOBITS, SHT_DYNSYM = 0, 8, 11
PF_X = 1
MAX_SEGMENTS = 1024
MAX_SECTIONS = 65536

# e_machine as platform.machine() prints it.
_PPC64, _RISCV = 21, 243
_MACHINES = {
    2: "sparc",
    3: "i686",
    8: "mips",
    20: "ppc",
    22: "s390x",
    40: "armv7l",
    43: "sparc64",
    50: "ia64",
    62: "x86_64",
    183: "aarch64",
    190: "cuda",
    224: "amdgpu",
    247: "bpf",
    258: "loongarch64",
}
_TYPES = {0: "none", 1: "rel", 2: "exec", 3: "dyn", 4: "core"}
_IDENT = 16
# By class: the file header after its identification, a program header, a section header.
_HEADER = {32: "HHIIIIIHHHHHH", 64: "HHIQQQIHHHHHH"}
_PROGRAM = {32: "8I", 64: "IIQQQQQQ"}
_SECTION = {32: "10I", 64: "IIQQQQIIQQ"}


class ElfError(ValueError):
    """The bytes are not the ELF file they begin as; the text says where."""


# What reading on raises where a file is damaged.
DAMAGED = (ElfError, struct.error, OverflowError)


@record
class ElfSegment:
    """One program header; ``type`` is ``PT_LOAD``, ``PT_DYNAMIC`` … or the number of another one."""

    type: int
    offset: int
    vaddr: int
    filesz: int
    memsz: int
    flags: int


@record
class ElfSection:
    """One section header; ``type`` is a number, ``name`` is empty when the name table cannot be read."""

    name: str
    type: int
    offset: int
    size: int
    link: int


@record
class ElfHeader:
    """The file header. ``order`` is the byte order character of ``struct``; ``machine`` and ``type`` are numbers."""

    bits: int
    order: str
    type: int
    machine: int
    flags: int
    phoff: int
    phentsize: int
    phnum: int
    shoff: int
    shentsize: int
    shnum: int
    shstrndx: int

    def form(self, by_class: dict[int, str]) -> struct.Struct:
        """The form of a structure that depends on the class."""
        return struct.Struct(self.order + by_class[self.bits])


@record
class Elf:
    """Headers of an ELF file. ``sections_problem`` is set when the section headers lie outside the file."""

    blob: Blob
    bits: int
    little_endian: bool
    machine: str
    type: str
    flags: int
    segments: tuple[ElfSegment, ...]
    sections: tuple[ElfSection, ...]
    sections_problem: str | None

    @property
    def order(self) -> str:
        """Byte order character for ``struct``."""
        return "<" if self.little_endian else ">"

    def section(self, name: str) -> ElfSection | None:
        """The first section called ``name``."""
        return next((section for section in self.sections if section.name == name), None)

    def file_offset(self, vaddr: int) -> int | None:
        """The file offset of a virtual address, None when no segment holds it."""
        for segment in self.segments:
            if segment.type == PT_LOAD and segment.vaddr <= vaddr < segment.vaddr + segment.filesz:
                return segment.offset + vaddr - segment.vaddr
        return None

    @property
    def executable_stack(self) -> bool | None:
        """Whether the object asks for a stack that may hold code; None where the machine's default decides.

        On x86-64 an object that does not say so asks for it.
        """
        segment = next((segment for segment in self.segments if segment.type == PT_GNU_STACK), None)
        if segment is None:
            return True if self.machine == "x86_64" else None
        return bool(segment.flags & PF_X)

    def read_vaddr(self, vaddr: int, size: int) -> bytes:
        """Bytes at a virtual address; fewer than ``size``, or none, when they are not in the file."""
        offset = self.file_offset(vaddr)
        return b"" if offset is None else self.blob.read_at(offset, size)


def read_header(data: bytes) -> ElfHeader:
    """The header at the start of ``data``, of which 64 bytes are enough. Raises ``ElfError`` when it is unusable."""
    if not data.startswith(b"\x7fELF"):
        raise ElfError("no ELF identification")
    if len(data) < 52:
        raise ElfError(f"cut at {len(data)} bytes")
    if data[4] not in (1, 2) or data[5] not in (1, 2) or data[6] != 1:
        raise ElfError(f"damaged ELF identification {data[4:7].hex(' ')}")
    bits, order = 32 * data[4], "<" if data[5] == 1 else ">"
    form = struct.Struct(order + _HEADER[bits])
    if len(data) < _IDENT + form.size:
        raise ElfError(f"cut at {len(data)} bytes")
    row = form.unpack_from(data, _IDENT)
    return ElfHeader(
        bits=bits,
        order=order,
        type=row[0],
        machine=row[1],
        phoff=row[4],
        shoff=row[5],
        flags=row[6],
        phentsize=row[8],
        phnum=row[9],
        shentsize=row[10],
        shnum=row[11],
        shstrndx=row[12],
    )


def read_segments(header: ElfHeader, blob: Blob) -> tuple[ElfSegment, ...]:
    """The program headers; raises ``ElfError`` when they are not in the file."""
    form, count = header.form(_PROGRAM), header.phnum
    if count == 0:
        return ()
    if header.phentsize != form.size or count > MAX_SEGMENTS:
        raise ElfError(f"{count} program headers of {header.phentsize} bytes")
    data = blob.read_at(header.phoff, form.size * count)
    if len(data) < form.size * count:
        raise ElfError(f"program headers end at {header.phoff + form.size * count}, the file at {blob.size}")
    found = []
    for row in form.iter_unpack(data):
        if header.bits == 64:
            kind, flags, offset, vaddr, _, filesz, memsz, _ = row
        else:
            kind, offset, vaddr, _, filesz, memsz, flags, _ = row
        found.append(ElfSegment(type=kind, offset=offset, vaddr=vaddr, filesz=filesz, memsz=memsz, flags=flags))
    return tuple(found)


def read_elf(blob: Blob) -> Elf:
    """Read the headers. Raises ``ElfError`` when the identification or the program headers are unusable."""
    header = read_header(blob.read_at(0, 64))
    segments = read_segments(header, blob)
    sections, problem = _sections(header, blob)
    machine = _MACHINES.get(header.machine, str(header.machine))
    if header.machine == _PPC64:
        machine = "ppc64le" if header.order == "<" else "ppc64"
    elif header.machine == _RISCV:
        machine = f"riscv{header.bits}"
    return Elf(
        blob=blob,
        bits=header.bits,
        little_endian=header.order == "<",
        machine=machine,
        type=_TYPES.get(header.type, str(header.type)),
        flags=header.flags,
        segments=segments,
        sections=sections,
        sections_problem=problem,
    )


def _sections(header: ElfHeader, blob: Blob) -> tuple[tuple[ElfSection, ...], str | None]:
    """The section headers, or none and the reason. Loading does not need them."""
    form, count, start = header.form(_SECTION), header.shnum, header.shoff
    if count == 0 or start == 0:
        return (), None
    if header.shentsize != form.size or count > MAX_SECTIONS:
        return (), f"{count} section headers of {header.shentsize} bytes"
    data = blob.read_at(start, form.size * count)
    if len(data) < form.size * count:
        return (), f"section headers end at {start + form.size * count}, the file at {blob.size}"
    rows = list(form.iter_unpack(data))
    names = b""
    if header.shstrndx < count:
        _, _, _, _, offset, size, *_ = rows[header.shstrndx]
        names = blob.read_at(offset, min(size, 1 << 20))
    sections = []
    for at, kind, _, _, offset, size, link, *_ in rows:
        end = names.find(b"\0", at)
        name = (names[at:end] if 0 <= at <= end else b"").decode("ascii", "backslashreplace")
        sections.append(ElfSection(name=name, type=kind, offset=offset, size=size, link=link))
    return tuple(sections), None
