"""Point slots of a loaded library at stubs in executable memory of our own, and back."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.worker.hooks.image import Relocation, loaded_libraries, relocations
from aotidoctor.worker.hooks.stubs import MACHINES, Machine

# The package's own kernels, PyTorch's C shims, and what a package for CUDA launches its kernels with.
WANTED = re.compile(r"(?:cpp|triton)_\w+|aoti_torch_\w+|cuModuleGetFunction|cuLaunchKernel\w*|cuLibraryGet\w+")
_ALIGN = 16


class HooksUnavailableError(Exception):
    """Calls of this package cannot be hooked on this machine; the text says why."""


@record
class Slot:
    """One slot: where it is, what it is for, and the function that the linker found for it."""

    address: int
    symbol: str
    target: int


def find_slots(directory: Path, wanted: re.Pattern[str] = WANTED) -> tuple[Machine, list[Slot]]:
    """The machine's stubs, and the slots of the libraries below ``directory`` whose symbols are wanted.

    Raises:
        HooksUnavailableError: another system or machine, or there is no such slot.
    """
    machine = MACHINES.get(platform.machine().lower())
    if not sys.platform.startswith("linux") or machine is None or sys.byteorder != "little":
        raise HooksUnavailableError(f"calls are traced on x86-64 and aarch64 Linux only, not on {platform.machine()}")
    libraries = loaded_libraries(directory)
    if not libraries:
        raise HooksUnavailableError("the package's library was not found among the mapped files")
    found = [item for _, base in libraries for item in relocations(base) if wanted.fullmatch(item.symbol)]
    slots = [_slot(item) for item in found if item.type in machine.relocations]
    if not slots:
        raise HooksUnavailableError("the library calls its kernels directly: it has no slots to hook")
    return machine, slots


def install(slots: list[Slot], stub: Callable[[int, Slot], bytes]) -> None:
    """Point each slot at the code that ``stub(number, slot)`` gives. The slots' order is their numbers.

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
    point({slot.address: base + start for slot, start in zip(slots, starts, strict=True)})


def restore(slots: list[Slot]) -> None:
    """Point the slots where the linker had pointed them."""
    point({slot.address: slot.target for slot in slots})


def _slot(item: Relocation) -> Slot:
    target = ctypes.c_uint64.from_address(item.address).value
    return Slot(address=item.address, symbol=item.symbol, target=target)


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def _memory_file() -> int:
    """A file in memory only. The Python of conda has no ``os.memfd_create``; the C library that it runs on has."""
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
    """Address of a private executable copy of ``code``, kept for the life of the process.

    Written through a file, mapped afterwards: no memory is writable and executable at once, and the kernel makes the
    instruction cache see it.
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


def point(values: dict[int, int]) -> None:
    """Write addresses of functions to slots; libraries linked with RELRO have theirs in read-only pages.

    Raises:
        HooksUnavailableError: such a page cannot be made writable.
    """
    pages = _protections({address & -mmap.PAGESIZE for address in values})
    locked = {page: rights for page, rights in pages.items() if not rights & mmap.PROT_WRITE}
    libc = _libc()
    for page, rights in locked.items():
        if libc.mprotect(page, mmap.PAGESIZE, rights | mmap.PROT_WRITE) != 0:
            raise HooksUnavailableError(f"a slot could not be made writable: {os.strerror(ctypes.get_errno())}")
    for address, value in values.items():
        ctypes.c_uint64.from_address(address).value = value
    for page, rights in locked.items():
        libc.mprotect(page, mmap.PAGESIZE, rights)


_BITS = {"r": mmap.PROT_READ, "w": mmap.PROT_WRITE, "x": mmap.PROT_EXEC}


def _protections(pages: set[int]) -> dict[int, int]:
    found = dict.fromkeys(pages, mmap.PROT_READ)
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        bounds, rights = line.split(maxsplit=2)[:2]
        low, high = (int(bound, 16) for bound in bounds.split("-"))
        for page in pages:
            if low <= page < high:
                found[page] = sum(_BITS.get(letter, 0) for letter in rights)
    return found
