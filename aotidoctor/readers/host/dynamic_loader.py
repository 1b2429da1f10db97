"""Find libraries and symbols of this host as the dynamic loader does, after ld.so(8).

ELF libraries are read by mmap. A symbol lookup through the hash tables touches a few pages of the file, so it takes
microseconds in libtorch_cpu.so (hundreds of MB); to build its symbol table first would take seconds. The layout of
``/etc/ld.so.cache`` is that of glibc's ``dl-cache.h``.

The process is modelled as the worker will be: the interpreter and what it needs, LD_PRELOAD, then torch's libraries,
then the package. A library that is already there is taken by its name, wherever it came from; that is how a package
finds libtorch, whose folder is on no search path.
"""

from __future__ import annotations

import errno
import mmap
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob
from aotidoctor.readers.package.elf import PT_DYNAMIC, PT_LOAD, ElfError, ElfHeader, read_header, read_segments

# Libraries: names, search paths, symbol lookup.
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 4, 5, 6, 14, 15, 29
_DT_GNU_HASH, _DT_VERSYM, _DT_VERDEF, _DT_VERDEFNUM = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
_SYMBOL_SIZE = 24
_NAME_LIMIT = 65536


@record(frozen=False)
class LibraryImage:
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
        """The NUL-terminated string at file offset ``offset``, at most 64 KiB."""
        end = self.data.find(b"\0", offset, offset + _NAME_LIMIT)
        if end < 0:
            raise ElfError(f"{self.path}: unterminated string at {offset}")
        return self.data[offset:end].decode("utf-8", "replace")

    def offset(self, address: int) -> int:
        """File offset of a virtual address."""
        for start, size, where in self.segments:
            if start <= address < start + size:
                return address - start + where
        raise ElfError(f"{self.path}: address {address:#x} is in no segment")


def open_image(path: str) -> LibraryImage:
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


def _read(path: str, data: mmap.mmap, header: ElfHeader) -> LibraryImage:
    if header.bits != 64:
        raise ElfError("not a 64-bit ELF file")
    segments = read_segments(header, Blob(len(data), lambda start, length: data[start : start + length]))
    image = LibraryImage(
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


def _read_dynamic(image: LibraryImage, where: int, size: int) -> None:
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


def _version_definitions(image: LibraryImage, strings: int) -> Iterator[tuple[int, str]]:
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


def defines_symbol(image: LibraryImage, name: bytes, hashed: int, version: str | None) -> bool:
    """Whether ``image`` defines ``name``, in ``version`` if it is given and the library has versions at all.

    ``hashed`` is ``gnu_hash(name)``. Raises ElfError when the tables make no sense.
    """
    try:
        for index in _candidates(image, name, hashed):
            if version is None or _DT_VERSYM not in image.tables or not image.versions:
                return True
            number = image.u16(image.offset(image.tables[_DT_VERSYM]) + 2 * index) & 0x7FFF
            if image.versions.get(number) == version:
                return True
    except (struct.error, OverflowError) as error:
        raise ElfError(f"{image.path}: {error}") from error
    return False


def _candidates(image: LibraryImage, name: bytes, hashed: int) -> Iterator[int]:
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


def _gnu_chain(image: LibraryImage, hashed: int) -> Iterator[int]:
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


def _sysv_chain(image: LibraryImage, name: bytes) -> Iterator[int]:
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


# /etc/ld.so.cache.

_NEW_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_MAGIC = b"ld.so-1.7.0"
_HEADER = 48
_ENTRY = struct.Struct("=iIIIQ")


def read_ldcache(path: str = "/etc/ld.so.cache") -> dict[str, tuple[str, ...]]:
    """Library name → files, best first. Empty when there is no cache or it is of an unknown format."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return {}
    base = data.find(_NEW_MAGIC) if data.startswith((_NEW_MAGIC, _OLD_MAGIC)) else -1
    if base < 0 or len(data) < base + _HEADER:
        return {}
    # Offsets of strings count from the new header, also when an old cache stands in front of it.
    data = data[base:]
    count = struct.unpack_from("=I", data, len(_NEW_MAGIC))[0]
    entries = data[_HEADER : _HEADER + count * _ENTRY.size]
    if len(entries) < count * _ENTRY.size:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for _flags, key, value, _os, _hwcap in _ENTRY.iter_unpack(entries):
        name = _text(data, key)
        found[name] = (*found.get(name, ()), _text(data, value))
    return found


def _text(data: bytes, offset: int) -> str:
    return data[offset : data.find(b"\0", offset)].decode("utf-8", "replace")


# Which file a NEEDED name resolves to, and where a symbol is looked up.
_DEFAULT_DIRS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
_MULTIARCH = {62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu", 22: "s390x-linux-gnu", 21: "powerpc64le-linux-gnu"}


@record(frozen=False)
class LinkMap:
    """The libraries of one process, growing as roots are added.

    ``found`` maps every name looked up to its image, None when no file was found. ``extra_dirs`` are searched
    last; torch loads from them by full path before anything else can ask for their libraries.
    """

    library_path: tuple[str, ...] = ()
    extra_dirs: tuple[str, ...] = ()
    machine: int | None = None
    found: dict[str, LibraryImage | None] = field(default_factory=dict)
    cache: Mapping[str, tuple[str, ...]] | None = None
    program_rpath: tuple[str, ...] = ()

    def add_program(self, path: str) -> list[LibraryImage]:
        """Start the process: the executable and everything it needs, breadth first. Raises ElfError or OSError."""
        image = open_image(path)
        self.machine = image.machine
        self.program_rpath = () if image.runpath else _expand(image.rpath, path)
        return self.closure([image])

    def add_file(self, path: str) -> list[LibraryImage]:
        """A library by path and everything it needs, breadth first; empty when it is no usable library."""
        image = self._usable(path)
        if image is None:
            return []
        self._remember(Path(path).name, image)
        return self.closure([image])

    def add_needed(self, names: Iterable[str], paths: tuple[str, ...]) -> list[LibraryImage]:
        """The needs of an object outside the host's file system: ``names``, searched first in its own ``paths``."""
        roots = [image for name in names if (image := self.resolve(name, (), paths)) is not None]
        return self.closure(roots)

    def closure(self, roots: list[LibraryImage]) -> list[LibraryImage]:
        """``roots`` and everything they need, breadth first, each file once."""
        order: dict[str, LibraryImage] = {image.path: image for image in roots}
        queue = list(order.values())
        for image in queue:
            inherited = () if image.runpath else _expand(image.rpath, image.path)
            for name in image.needed:
                wanted = self.resolve(name, inherited, _expand(image.runpath, image.path))
                if wanted is not None and wanted.path not in order:
                    order[wanted.path] = wanted
                    queue.append(wanted)
        return queue

    def resolve(self, name: str, rpath: tuple[str, ...], runpath: tuple[str, ...]) -> LibraryImage | None:
        """The image for a NEEDED name; None when the loader would say "cannot open shared object file"."""
        if name in self.found:
            return self.found[name]
        candidates = (name,) if "/" in name else self._candidates(name, rpath, runpath)
        image = next((image for path in candidates if (image := self._usable(path)) is not None), None)
        self._remember(name, image)
        return image

    def _candidates(self, name: str, rpath: tuple[str, ...], runpath: tuple[str, ...]) -> Iterable[str]:
        early = (*rpath, *(() if runpath else self.program_rpath), *self.library_path, *runpath)
        yield from (f"{folder}/{name}" for folder in early)
        if self.cache is None:
            self.cache = read_ldcache()
        yield from self.cache.get(name, ())
        multiarch = _MULTIARCH.get(self.machine or 0)
        if multiarch:
            yield from (f"{folder}/{multiarch}/{name}" for folder in ("/lib", "/usr/lib", "/usr/local/lib"))
        yield from (f"{folder}/{name}" for folder in (*_DEFAULT_DIRS, *self.extra_dirs))

    def _usable(self, path: str) -> LibraryImage | None:
        try:
            image = open_image(path)
        except OSError as error:
            # It may be there: whoever lacks memory or descriptors of his own knows nothing about it.
            if error.errno in (errno.ENOMEM, errno.EMFILE, errno.ENFILE):
                raise
            return None
        except ElfError:
            return None
        # The loader passes over libraries of another machine in silence and goes on searching.
        return image if self.machine in (None, image.machine) else None

    def _remember(self, name: str, image: LibraryImage | None) -> None:
        self.found[name] = image
        if image is not None and image.soname and self.found.get(image.soname) is None:
            self.found[image.soname] = image


def library_path(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The folders of LD_LIBRARY_PATH, without the empty ones, which a worker does not get either."""
    return tuple(part for part in environ.get("LD_LIBRARY_PATH", "").split(":") if part)


def _expand(paths: tuple[str, ...], image_path: str) -> tuple[str, ...]:
    # ld.so takes $ORIGIN from the path after symlinks of the folder, not of the file itself.
    origin = str(Path(image_path).parent)
    return tuple(path.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for path in paths)


# Everything that one library needs.
def library_dependencies(path: str, environ: Mapping[str, str]) -> dict[str, str | None]:
    """Name to file, None for what is not found; empty when ``path`` is no library of a 64-bit host.

    Only the library's own search paths, LD_LIBRARY_PATH and those of the system count: what the process has loaded
    before is not known here.
    """
    links = LinkMap(library_path=library_path(environ))
    try:
        images = links.add_file(path)
    except (OSError, ElfError):
        return {}
    names = dict.fromkeys(name for image in images for name in image.needed)
    return {name: image.path if (image := links.found.get(name)) is not None else None for name in names}
