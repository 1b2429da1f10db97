"""Editors for archives, metadata and ELF files: how most faulty packages are made without compiling anything."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from elftools.elf.elffile import ELFFile

Member = tuple[str, bytes]

# The loader takes whatever directory the names share; the file's stem is only what the writer puts there.
MODEL_FOLDER = "data/aotinductor"


def read(path: Path) -> list[Member]:
    """All members in order, with their bytes."""
    with zipfile.ZipFile(path) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def write(path: Path, members: Iterable[Member], *, compression: int = zipfile.ZIP_STORED) -> Path:
    """Write ``members`` in order, duplicates and strange names included."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", compression) as archive:
        warnings.simplefilter("ignore", UserWarning)  # duplicate names are the point
        for name, data in members:
            info = zipfile.ZipInfo("placeholder")
            info.filename = name  # the constructor would tidy it up
            info.compress_type = compression
            archive.writestr(info, data)
    return path


def find(members: Iterable[Member], ending: str) -> Member:
    """The first member whose name ends so."""
    return next(member for member in members if member[0].endswith(ending))


def drop(members: Iterable[Member], *endings: str) -> list[Member]:
    """Without the members whose names end so."""
    return [member for member in members if not member[0].endswith(endings)]


def replace(members: Iterable[Member], ending: str, change: Callable[[bytes], bytes]) -> list[Member]:
    """Change the bytes of the members whose names end so."""
    return [(name, change(data) if name.endswith(ending) else data) for name, data in members]


def rename(members: Iterable[Member], change: Callable[[str], str]) -> list[Member]:
    """Change the names."""
    return [(change(name), data) for name, data in members]


def prefix(members: Iterable[Member]) -> str:
    """The top folder that the members share."""
    return PurePosixPath(next(iter(members))[0]).parts[0]


def rename_model(members: Iterable[Member], old: str, new: str) -> list[Member]:
    """Move the files of model ``old`` to model ``new``."""
    return rename(members, lambda name: name.replace(f"{MODEL_FOLDER}/{old}/", f"{MODEL_FOLDER}/{new}/"))


def edit_metadata(members: Iterable[Member], **changes: object) -> list[Member]:
    """Set keys in every ``*_metadata.json``; None removes one. The loaders read different ones, so all are changed."""

    def change(data: bytes) -> bytes:
        metadata = json.loads(data)
        metadata.update(changes)
        return json.dumps({key: value for key, value in metadata.items() if value is not None}).encode()

    return replace(members, "_metadata.json", change)


def corrupt_member(path: Path, ending: str, *, offset: int = -1000, mask: int = 0x40) -> None:
    """Flip bits of one stored byte in place and leave the CRC as it was. A negative ``offset`` counts from the end."""
    with zipfile.ZipFile(path) as archive:
        info = next(info for info in archive.infolist() if info.filename.endswith(ending))
    data = bytearray(path.read_bytes())
    name_size, extra_size = struct.unpack_from("<HH", data, info.header_offset + 26)
    start = info.header_offset + 30 + name_size + extra_size
    data[start + (offset if offset >= 0 else info.file_size + offset)] ^= mask
    path.write_bytes(data)


# --- ELF -----------------------------------------------------------------------------------------------------------


@contextmanager
def _open_elf(data: bytes) -> Iterator[ELFFile]:
    yield ELFFile(io.BytesIO(data))


def set_machine(data: bytes, machine: int) -> bytes:
    """Change ``e_machine``: 183 is AArch64."""
    return data[:18] + struct.pack("<H", machine) + data[20:]


def section_range(data: bytes, name: str) -> tuple[int, int]:
    """File offset and size of a section."""
    with _open_elf(data) as elf:
        section = elf.get_section_by_name(name)
        return section["sh_offset"], section["sh_size"]


def rename_dynamic_string(data: bytes, old: str, new: str) -> bytes:
    """Overwrite one string of ``.dynstr`` (a needed library, a symbol) by another of the same length."""
    assert len(old) == len(new)
    start, size = section_range(data, ".dynstr")
    table = data[start : start + size]
    wanted = b"\0" + old.encode() + b"\0"
    assert table.count(wanted) == 1, (old, table.count(wanted))
    return data[:start] + table.replace(wanted, b"\0" + new.encode() + b"\0") + data[start + size :]


def _elf_hash(name: str) -> int:
    value = 0
    for character in name.encode():
        value = (value << 4) + character
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def rename_version(data: bytes, old: str, new: str) -> bytes:
    """Ask for symbol version ``new`` instead of ``old`` (``GLIBC_2.14``): its name and its hash."""
    start, size = section_range(data, ".gnu.version_r")
    table = data[start : start + size]
    before, after = struct.pack("<I", _elf_hash(old)), struct.pack("<I", _elf_hash(new))
    assert before in table
    data = data[:start] + table.replace(before, after) + data[start + size :]
    return rename_dynamic_string(data, old, new)


def symbol_range(data: bytes, part: str) -> tuple[int, int]:
    """File offset and size of the first sized symbol whose name holds ``part``; sections map 1:1 where code lies."""
    with _open_elf(data) as elf:
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            if part in symbol.name and symbol["st_shndx"] not in ("SHN_UNDEF", "SHN_ABS"):
                section = elf.get_section(symbol["st_shndx"])
                return symbol["st_value"] - section["sh_addr"] + section["sh_offset"], symbol["st_size"]
    raise LookupError(part)


def versions_needed(data: bytes) -> set[str]:
    """Names of the symbol versions asked for."""
    with _open_elf(data) as elf:
        section = elf.get_section_by_name(".gnu.version_r")
        return {auxiliary.name for _, auxiliaries in section.iter_versions() for auxiliary in auxiliaries}


def overwrite(data: bytes, offset: int, new: bytes) -> bytes:
    """Put ``new`` at ``offset``."""
    return data[:offset] + new + data[offset + len(new) :]
