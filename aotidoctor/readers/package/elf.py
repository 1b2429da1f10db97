"""ELF headers through pyelftools, read in place.

Only pyelftools' structure definitions are used (``ELFStructs``): its ``ELFFile`` pulls in the DWARF reader, which
takes longer to import than everything done here. What the dynamic loader needs is found as the loader finds it,
through program headers: a ``.so`` that lost its section headers (cut short) still loads and must still be read.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob

Row = Mapping[str, int | str]

PF_X = 1
MAX_SEGMENTS = 1024
MAX_SECTIONS = 65536

# e_machine as platform.machine() prints it.
_MACHINES = {
    "EM_X86_64": "x86_64",
    "EM_AARCH64": "aarch64",
    "EM_386": "i686",
    "EM_ARM": "armv7l",
    "EM_S390": "s390x",
    "EM_LOONGARCH": "loongarch64",
    "EM_CUDA": "cuda",
    "EM_AMDGPU": "amdgpu",
}
_TYPES = {"ET_REL": "rel", "ET_EXEC": "exec", "ET_DYN": "dyn", "ET_CORE": "core"}


class ElfError(ValueError):
    """The bytes are not the ELF file they begin as; the text says where."""


@record
class Segment:
    """One program header; ``type`` like ``PT_LOAD``."""

    type: str
    offset: int
    vaddr: int
    filesz: int
    memsz: int
    flags: int


@record
class Section:
    """One section header; ``type`` like ``SHT_SYMTAB``, ``name`` empty when the name table cannot be read."""

    name: str
    type: str
    offset: int
    size: int
    link: int


@record
class Elf:
    """Headers of an ELF file. ``sections_problem`` is set when the section headers lie outside the file."""

    blob: Blob
    bits: int
    little_endian: bool
    machine: str
    type: str
    flags: int
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    sections_problem: str | None
    sections_end: int

    @property
    def order(self) -> str:
        """Byte order character for ``struct``."""
        return "<" if self.little_endian else ">"

    def section(self, name: str) -> Section | None:
        """The first section called ``name``."""
        return next((section for section in self.sections if section.name == name), None)

    def file_offset(self, vaddr: int) -> int | None:
        """Where the byte at a virtual address stands in the file, None when no segment holds it."""
        for segment in self.segments:
            if segment.type == "PT_LOAD" and segment.vaddr <= vaddr < segment.vaddr + segment.filesz:
                return segment.offset + vaddr - segment.vaddr
        return None

    @property
    def executable_stack(self) -> bool | None:
        """Whether the object asks for a stack that may hold code; None where only the machine's default tells.

        On x86-64 an object that does not say so asks for it.
        """
        segment = next((segment for segment in self.segments if segment.type == "PT_GNU_STACK"), None)
        if segment is None:
            return True if self.machine == "x86_64" else None
        return bool(segment.flags & PF_X)

    def read_vaddr(self, vaddr: int, size: int) -> bytes:
        """Bytes at a virtual address; fewer than ``size``, or none, when they are not in the file."""
        offset = self.file_offset(vaddr)
        return b"" if offset is None else self.blob.read_at(offset, size)


def read_elf(blob: Blob) -> Elf:
    """Read the headers. Raises ``ElfError`` when the identification or the program headers are unusable."""
    ident = blob.read_at(0, 64)
    if not ident.startswith(b"\x7fELF"):
        raise ElfError("no ELF identification")
    if len(ident) < 52:
        raise ElfError(f"cut at {len(ident)} bytes")
    if ident[4] not in (1, 2) or ident[5] not in (1, 2) or ident[6] != 1:
        raise ElfError(f"damaged ELF identification {ident[4:7].hex(' ')}")
    bits, little = 32 * ident[4], ident[5] == 1
    reader = _StructReader(blob, bits=bits, little=little)
    header = reader.header()
    segments = reader.segments(header)
    sections, problem = reader.sections(header)
    return Elf(
        blob=blob,
        bits=bits,
        little_endian=little,
        machine=_machine_name(str(header["e_machine"]), bits=bits, little=little),
        type=_TYPES.get(str(header["e_type"]), str(header["e_type"])),
        flags=int(header["e_flags"]),
        segments=segments,
        sections=sections,
        sections_problem=problem,
        sections_end=int(header["e_shoff"]) + int(header["e_shnum"]) * int(header["e_shentsize"]),
    )


def _machine_name(machine: str, *, bits: int, little: bool) -> str:
    match machine:
        case "EM_PPC64":
            return "ppc64le" if little else "ppc64"
        case "EM_RISCV":
            return f"riscv{bits}"
    return _MACHINES.get(machine, machine.removeprefix("EM_").lower())


class _StructReader:
    """pyelftools' structures for one class and byte order, applied to one blob."""

    def __init__(self, blob: Blob, *, bits: int, little: bool) -> None:
        # Imported here: a file that is no ELF should not pay for it.
        from elftools.elf.structs import ELFStructs  # noqa: PLC0415

        self.blob = blob
        self.structs = ELFStructs(little_endian=little, elfclass=bits)
        self.structs.create_basic_structs()

    def header(self) -> Row:
        """The file header; after it the structures that depend on the machine exist."""
        stream = io.BytesIO(self.blob.read_at(0, self.structs.Elf_Ehdr.sizeof()))
        row = _parse(self.structs.Elf_Ehdr, stream)
        self.structs.create_advanced_structs(row["e_type"], row["e_machine"])
        return row

    def segments(self, header: Row) -> tuple[Segment, ...]:
        """The program headers; raises ``ElfError`` when they are not in the file."""
        size, count, start = self.structs.Elf_Phdr.sizeof(), int(header["e_phnum"]), int(header["e_phoff"])
        if count == 0:
            return ()
        if int(header["e_phentsize"]) != size or count > MAX_SEGMENTS:
            raise ElfError(f"{count} program headers of {header['e_phentsize']} bytes")
        data = self.blob.read_at(start, size * count)
        if len(data) < size * count:
            raise ElfError(f"program headers end at {start + size * count}, the file at {self.blob.size}")
        stream = io.BytesIO(data)
        return tuple(_segment(_parse(self.structs.Elf_Phdr, stream)) for _ in range(count))

    def sections(self, header: Row) -> tuple[tuple[Section, ...], str | None]:
        """The section headers, or none and the reason. Loading does not need them."""
        size, count, start = self.structs.Elf_Shdr.sizeof(), int(header["e_shnum"]), int(header["e_shoff"])
        if count == 0 or start == 0:
            return (), None
        if int(header["e_shentsize"]) != size or count > MAX_SECTIONS:
            return (), f"{count} section headers of {header['e_shentsize']} bytes"
        data = self.blob.read_at(start, size * count)
        if len(data) < size * count:
            return (), f"section headers end at {start + size * count}, the file at {self.blob.size}"
        stream = io.BytesIO(data)
        rows = [_parse(self.structs.Elf_Shdr, stream) for _ in range(count)]
        return self._named(rows, int(header["e_shstrndx"])), None

    def _named(self, rows: list[Row], index: int) -> tuple[Section, ...]:
        names = b""
        if index < len(rows):
            table = rows[index]
            names = self.blob.read_at(int(table["sh_offset"]), min(int(table["sh_size"]), 1 << 20))
        return tuple(_section(row, names) for row in rows)


def _parse(struct: object, stream: io.BytesIO) -> Row:
    from elftools.common.exceptions import ELFParseError  # noqa: PLC0415
    from elftools.common.utils import struct_parse  # noqa: PLC0415

    try:
        row: Row = struct_parse(struct, stream)
    except ELFParseError as error:
        raise ElfError(str(error)) from error
    return row


def _segment(row: Row) -> Segment:
    return Segment(
        type=str(row["p_type"]),
        offset=int(row["p_offset"]),
        vaddr=int(row["p_vaddr"]),
        filesz=int(row["p_filesz"]),
        memsz=int(row["p_memsz"]),
        flags=int(row["p_flags"]),
    )


def _section(row: Row, names: bytes) -> Section:
    start = int(row["sh_name"])
    end = names.find(b"\0", start)
    name = names[start:end] if 0 <= start <= end else b""
    return Section(
        name=name.decode("ascii", "backslashreplace"),
        type=str(row["sh_type"]),
        offset=int(row["sh_offset"]),
        size=int(row["sh_size"]),
        link=int(row["sh_link"]),
    )
