"""Point slots of a loaded library at stubs in executable memory of our own, and back.

A package calls ``cpp_fused_*`` and ``aoti_torch_*`` through slots of its global offset table, which the dynamic
linker filled in; they are found in the ELF image in this process's memory. Pointing such a slot at a stub of our own
catches every call; nothing is compiled again, and nothing of the package changes but that slot.

Each stub preserves every register that carries an argument, and ends in a jump to the function: it adds no frame, so
exceptions pass as if it were not there. Its bytes are in ``stubs.lst``; the values that differ from stub to stub are
filled in at known places. ``r11`` of x86-64 and ``x16``/``x17`` of aarch64 may be changed between caller and callee:
the linker's own PLT does.

The ring that a trace stub writes to: a 64-bit count of all calls, padding up to 64 bytes, then ``RECORDS`` records of
sixteen bytes: number of the stub (u32), second integer argument (u32), clock ticks (u64).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import re
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.model.run import portable

# Machine code of the stubs.
RECORDS = 1 << 16
HEADER_BYTES = 64
RING_BYTES = HEADER_BYTES + 16 * RECORDS

# Of the registers that a watch stub saves, where the first stack argument's address is.
STACK_AT = 192


@record
class StubMachine:
    """Stubs of one machine, and its relocation types for function slots (``JUMP_SLOT``, ``GLOB_DAT``).

    ``integers`` is the number of integer arguments that are passed in registers.
    """

    trace: bytes
    watch: bytes
    relocations: tuple[int, int]
    integers: int

    def trace_stub(self, *, ring: int, number: int, target: int) -> bytes:
        """Write a record to the ring at ``ring``, then jump to ``target``."""
        return _fill(self.trace, ring, number, target)

    def watch_stub(self, *, callback: int, number: int, target: int) -> bytes:
        """Call ``callback(number, address of the saved registers)``, then jump to ``target``."""
        return _fill(self.watch, callback, number, target)


_POINTER = struct.pack("<Q", 0x1111111111111111)
_TARGET = struct.pack("<Q", 0x2222222222222222)
_NUMBER = struct.pack("<I", 0x33333333)


def _fill(code: bytes, pointer: int, number: int, target: int) -> bytes:
    filled = code.replace(_POINTER, struct.pack("<Q", pointer)).replace(_TARGET, struct.pack("<Q", target))
    return filled.replace(_NUMBER, struct.pack("<I", number))


MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_CONVENTIONS = {"x86_64": ((7, 6), 6), "aarch64": ((1026, 1025), 8)}


def stub_machine(name: str) -> StubMachine:
    """The stubs of ``x86_64`` or ``aarch64``, from the listing beside this file."""
    code, title = dict[str, bytes](), ""
    for line in Path(__file__).with_name("stubs.lst").read_text(encoding="ascii").splitlines():
        bytes_, bar, _ = line.partition("|")
        if bar:
            code[title] = code.get(title, b"") + bytes.fromhex(bytes_)
        else:
            title = line
    relocation_types, integers = _CONVENTIONS[name]
    watch, trace = code[f"{name} watch"], code[f"{name} trace"]
    return StubMachine(trace=trace, watch=watch, relocations=relocation_types, integers=integers)


# The ELF image of a loaded library, in memory.
_PT_LOAD, _PT_DYNAMIC = 1, 2
_STRTAB, _SYMTAB, _RELA, _RELASZ, _PLTRELSZ, _JMPREL = 5, 6, 7, 8, 2, 23
_RELA_SIZE, _SYM_SIZE = 24, 24


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


def relocations(base: int) -> Iterator[tuple[int, str, int]]:
    """Address, symbol and type of each relocation of the image at ``base``, of the PLT and of the GOT."""
    bias, tags = _tags(base)
    for table, size in ((_JMPREL, _PLTRELSZ), (_RELA, _RELASZ)):
        if not {table, size, _SYMTAB, _STRTAB} <= tags.keys():
            continue
        data = ctypes.string_at(tags[table], tags[size] - tags[size] % _RELA_SIZE)
        for offset, info, _ in struct.iter_unpack("<QQq", data):
            index = info >> 32
            if index:
                name = struct.unpack("<I", ctypes.string_at(tags[_SYMTAB] + index * _SYM_SIZE, 4))[0]
                symbol = ctypes.string_at(tags[_STRTAB] + name).decode("utf-8", "replace")
                yield bias + offset, symbol, info & 0xFFFFFFFF


def call_tables(base: int) -> tuple[bytes, int, int, int]:
    """``(relocations of calls, address of the symbols, of their names, load bias)`` of the image at ``base``.

    Raw, to search for one of many. Empty where there are none.
    """
    bias, tags = _tags(base)
    if not {_JMPREL, _PLTRELSZ, _SYMTAB, _STRTAB} <= tags.keys():
        return b"", 0, 0, bias
    size = tags[_PLTRELSZ] - tags[_PLTRELSZ] % _RELA_SIZE
    return ctypes.string_at(tags[_JMPREL], size), tags[_SYMTAB], tags[_STRTAB], bias


def _tags(base: int) -> tuple[int, dict[int, int]]:
    """Load bias, and the dynamic section with absolute addresses: glibc adds the bias there, other libraries do not."""
    bias, address = _segments(base)
    tags: dict[int, int] = {}
    while address is not None:
        tag, value = struct.unpack("<QQ", ctypes.string_at(address, 16))
        if tag == 0:
            break
        tags[tag] = value if tag in (_RELASZ, _PLTRELSZ) or value >= base else value + bias
        address += 16
    return bias, tags


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


# The slots. The package's own kernels, PyTorch's C shims, and the launches of a package for CUDA.
HOOKED_SYMBOLS = re.compile(r"(?:cpp|triton)_\w+|aoti_torch_\w+|cuModuleGetFunction|cuLaunchKernel\w*|cuLibraryGet\w+")
_ALIGN = 16
_BITS = {"r": mmap.PROT_READ, "w": mmap.PROT_WRITE, "x": mmap.PROT_EXEC}


class HooksUnavailableError(Exception):
    """Raised when calls of this package cannot be hooked on this machine; the text gives the reason."""


@record
class CallSlot:
    """One slot: its address, its symbol, and the address of the function that the linker found for it."""

    address: int
    symbol: str
    target: int


def find_slots(directory: Path, wanted: re.Pattern[str] = HOOKED_SYMBOLS) -> tuple[StubMachine, list[CallSlot]]:
    """The machine's stubs, and the slots of the libraries below ``directory`` whose symbols match ``wanted``.

    Raises:
        HooksUnavailableError: another system or machine, or there is no such slot.
    """
    name = MACHINES.get(platform.machine().lower())
    if portable(os.environ):
        raise HooksUnavailableError("calls are traced on Linux only, and not by the portable runner")
    if name is None or sys.byteorder != "little":
        raise HooksUnavailableError(f"calls are traced on x86-64 and aarch64 only, not on {platform.machine()}")
    libraries = loaded_libraries(directory)
    if not libraries:
        raise HooksUnavailableError("the package's library was not found among the mapped files")
    machine = stub_machine(name)
    slots = [
        CallSlot(address=address, symbol=symbol, target=ctypes.c_uint64.from_address(address).value)
        for _, base in libraries
        for address, symbol, kind in relocations(base)
        if kind in machine.relocations and wanted.fullmatch(symbol)
    ]
    if not slots:
        raise HooksUnavailableError("the library calls its kernels directly: it has no slots to hook")
    return machine, slots


def install_stubs(slots: list[CallSlot], stub: Callable[[int, CallSlot], bytes]) -> None:
    """Point each slot at the code of ``stub(number, slot)``, numbered in the order of the slots.

    Raises:
        HooksUnavailableError: this host permits no executable memory.
    """
    stubs = [stub(number, slot) for number, slot in enumerate(slots)]
    starts, code = [], bytearray()
    for one in stubs:
        code += b"\0" * (-len(code) % _ALIGN)
        starts.append(len(code))
        code += one
    base = _executable(bytes(code))
    point_slots({slot.address: base + start for slot, start in zip(slots, starts, strict=True)})


def restore_slots(slots: list[CallSlot]) -> None:
    """Point the slots at their original functions."""
    point_slots({slot.address: slot.target for slot in slots})


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def _memory_file() -> int:
    """A file in memory only. The Python of conda has no ``os.memfd_create``, but the C library below it has."""
    name = "aotidoctor-stubs"
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    close_on_exec = 1
    fd = int(_libc().memfd_create(name.encode(), close_on_exec))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return fd


def _executable(code: bytes) -> int:
    """Address of a private executable copy of ``code``, which lives as long as the process.

    It is written through a file and mapped afterwards: no memory is writable and executable at once, and the kernel
    updates the instruction cache.
    """
    try:
        fd = _memory_file()
    except (OSError, AttributeError) as error:
        raise HooksUnavailableError(f"no memory file for the stubs: {error}") from error
    try:
        os.write(fd, code)
        address = _libc().mmap(None, len(code), mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, fd, 0)
    finally:
        os.close(fd)
    if address in (None, ctypes.c_void_p(-1).value):
        raise HooksUnavailableError(f"no executable memory: {os.strerror(ctypes.get_errno())}")
    return int(address)


def point_slots(values: dict[int, int]) -> None:
    """Write addresses of functions to slots; libraries linked with RELRO have theirs in read-only pages.

    Raises:
        HooksUnavailableError: such a page cannot be made writable.
    """
    pages = dict.fromkeys((address & -mmap.PAGESIZE for address in values), mmap.PROT_READ)
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        bounds, letters = line.split(maxsplit=2)[:2]
        low, high = (int(bound, 16) for bound in bounds.split("-"))
        for page in pages:
            if low <= page < high:
                pages[page] = sum(_BITS.get(letter, 0) for letter in letters)
    locked = {page: rights for page, rights in pages.items() if not rights & mmap.PROT_WRITE}
    libc = _libc()
    for page, rights in locked.items():
        if libc.mprotect(page, mmap.PAGESIZE, rights | mmap.PROT_WRITE) != 0:
            raise HooksUnavailableError(f"a slot could not be made writable: {os.strerror(ctypes.get_errno())}")
    for address, value in values.items():
        ctypes.c_uint64.from_address(address).value = value
    for page, rights in locked.items():
        libc.mprotect(page, mmap.PAGESIZE, rights)
