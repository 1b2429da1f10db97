"""ELF libraries of this host, read by mmap: names, search paths, and symbol lookup through their hash tables.

A lookup touches a few pages of the file, so asking libtorch_cpu.so (hundreds of MB) costs microseconds; to build its
symbol table first would take seconds.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob
from aotidoctor.readers.package.elf import PT_DYNAMIC, PT_LOAD, ElfError, Header, read_header, read_segments

_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 4, 5, 6, 14, 15, 29
_DT_GNU_HASH, _DT_VERSYM, _DT_VERDEF, _DT_VERDEFNUM = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
_SYMBOL_SIZE = 24
_NAME_LIMIT = 65536


@record(frozen=False)
class Image:
    """One shared library or executable. ``machine`` is ``e_machine``; paths are as written, ``$ORIGIN`` unexpanded.

    ``versions`` maps an index of the version table to a version name, empty when the library defines no versions.
    """

    path: str
    data: mmap.mmap
    order: str
    machine: int
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    versions: dict[int, str] = field(default_factory=dict)
    segments: tuple[tuple[int, int, int], ...] = ()
    tables: dict[int, int] = field(default_factory=dict)

    def u32(self, offset: int) -> int:
        """The unsigned 32-bit word at file offset ``offset``."""
        value: int = struct.unpack_from(self.order + "I", self.data, offset)[0]
        return value

    def u16(self, offset: int) -> int:
        """The unsigned 16-bit word at file offset ``offset``."""
        value: int = struct.unpack_from(self.order + "H", self.data, offset)[0]
        return value

    def string(self, offset: int) -> str:
        """The NUL-terminated string at file offset ``offset``."""
        return self.bytes_at(offset).decode("utf-8", "replace")

    def bytes_at(self, offset: int) -> bytes:
        """The NUL-terminated bytes at file offset ``offset``, at most 64 KiB."""
        end = self.data.find(b"\0", offset, offset + _NAME_LIMIT)
        if end < 0:
            raise ElfError(f"{self.path}: unterminated string at {offset}")
        return self.data[offset:end]

    def offset(self, address: int) -> int:
        """File offset of a virtual address."""
        for start, size, where in self.segments:
            if start <= address < start + size:
                return address - start + where
        raise ElfError(f"{self.path}: address {address:#x} is in no segment")


def open_image(path: str) -> Image:
    """Read the headers and the dynamic section of a 64-bit ELF file. Raises ElfError or OSError."""
    with Path(path).open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise ElfError(f"{path}: empty file") from error
    try:
        return _read(path, data, read_header(data[:64]))
    except (ElfError, struct.error, IndexError, OverflowError) as error:
        raise ElfError(f"{path}: {error}") from error


def _read(path: str, data: mmap.mmap, header: Header) -> Image:
    if header.bits != 64:
        raise ElfError("not a 64-bit ELF file")
    segments = read_segments(header, Blob(len(data), lambda start, length: data[start : start + length]))
    image = Image(
        path=path,
        data=data,
        order=header.order,
        machine=header.machine,
        segments=tuple((one.vaddr, one.filesz, one.offset) for one in segments if one.type == PT_LOAD),
    )
    for one in segments:
        if one.type == PT_DYNAMIC:
            _read_dynamic(image, one.offset, one.filesz)
    return image


def _read_dynamic(image: Image, where: int, size: int) -> None:
    entries = list(struct.iter_unpack(image.order + "QQ", image.data[where : where + size // 16 * 16]))
    end = next((index for index, (tag, _) in enumerate(entries) if tag == 0), len(entries))
    image.tables = dict(entries[:end])
    if _DT_STRTAB not in image.tables:
        return
    strings = image.offset(image.tables[_DT_STRTAB])

    def texts(tag: int) -> list[str]:
        return [image.string(strings + value) for kind, value in entries[:end] if kind == tag]

    image.needed = tuple(texts(_DT_NEEDED))
    image.soname = next(iter(texts(_DT_SONAME)), None)
    image.rpath = tuple(part for text in texts(_DT_RPATH) for part in text.split(":") if part)
    image.runpath = tuple(part for text in texts(_DT_RUNPATH) for part in text.split(":") if part)
    image.versions = dict(_version_definitions(image, strings))


def _version_definitions(image: Image, strings: int) -> Iterator[tuple[int, str]]:
    if _DT_VERDEF not in image.tables:
        return
    at = image.offset(image.tables[_DT_VERDEF])
    for _ in range(image.tables.get(_DT_VERDEFNUM, 0)):
        index, step = image.u16(at + 4), image.u32(at + 16)
        name = image.u32(at + image.u32(at + 12))
        yield index & 0x7FFF, image.string(strings + name)
        if step == 0:
            return
        at += step


def gnu_hash(name: bytes) -> int:
    """The hash of a symbol name that ``DT_GNU_HASH`` tables use."""
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def defines(image: Image, name: bytes, hashed: int, version: str | None) -> bool:
    """Whether ``image`` defines ``name``, in ``version`` if one is asked for and the library has versions at all.

    ``hashed`` is ``gnu_hash(name)``. Raises ElfError when the tables make no sense.
    """
    try:
        return any(_version_fits(image, index, version) for index in _candidates(image, name, hashed))
    except (struct.error, OverflowError) as error:
        raise ElfError(f"{image.path}: {error}") from error


def _version_fits(image: Image, index: int, version: str | None) -> bool:
    if version is None or _DT_VERSYM not in image.tables or not image.versions:
        return True
    number = image.u16(image.offset(image.tables[_DT_VERSYM]) + 2 * index) & 0x7FFF
    return image.versions.get(number) == version


def _candidates(image: Image, name: bytes, hashed: int) -> Iterator[int]:
    if _DT_SYMTAB not in image.tables or _DT_STRTAB not in image.tables:
        return
    if _DT_GNU_HASH in image.tables:
        indices = _gnu_chain(image, hashed)
    elif _DT_HASH in image.tables:
        indices = _sysv_chain(image, name)
    else:
        return
    symbols = image.offset(image.tables[_DT_SYMTAB])
    strings = image.offset(image.tables[_DT_STRTAB])
    for index in indices:
        at = symbols + index * _SYMBOL_SIZE
        defined = image.u16(at + 6) != 0
        start = strings + image.u32(at)
        if defined and image.data[start : start + len(name) + 1] == name + b"\0":
            yield index


def _gnu_chain(image: Image, hashed: int) -> Iterator[int]:
    at = image.offset(image.tables[_DT_GNU_HASH])
    buckets, first, words, shift = struct.unpack_from(image.order + "IIII", image.data, at)
    if not buckets or not words:
        return
    word = struct.unpack_from(image.order + "Q", image.data, at + 16 + 8 * ((hashed // 64) % words))[0]
    mask = (1 << (hashed % 64)) | (1 << ((hashed >> shift) % 64))
    if word & mask != mask:
        return
    table = at + 16 + 8 * words
    chains = table + 4 * buckets
    index = image.u32(table + 4 * (hashed % buckets))
    while index >= first:
        value = image.u32(chains + 4 * (index - first))
        if value | 1 == hashed | 1:
            yield index
        if value & 1:
            return
        index += 1


def _sysv_chain(image: Image, name: bytes) -> Iterator[int]:
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ ((value & 0xF0000000) >> 24)) & 0x0FFFFFFF
    at = image.offset(image.tables[_DT_HASH])
    buckets, chains = image.u32(at), image.u32(at + 4)
    if not buckets:
        return
    index = image.u32(at + 8 + 4 * (value % buckets))
    for _ in range(chains):
        if index == 0:
            return
        yield index
        index = image.u32(at + 8 + 4 * (buckets + index))
