"""Point slots of a loaded library at stubs in executable memory of our own, and back.

A package calls ``cpp_fused_*`` and ``aoti_torch_*`` through slots of its global offset table, which the dynamic
linker filled in; they are found in the ELF image in this process's memory. Pointing such a slot at a stub of our own
catches every call; nothing is compiled again, and nothing of the package changes but that slot.

Each stub preserves every register that carries an argument, and ends in a jump to the function: it adds no frame, so
exceptions pass as if it were not there. Its bytes were made by GNU as from the text beside them; the values that differ
from stub to stub are filled in at known places. ``r11`` of x86-64 and ``x16``/``x17`` of aarch64 may be changed between
caller and callee: the linker's own PLT does.

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


def _code(text: str) -> bytes:
    """Bytes of a listing: hexadecimal before the bar, assembly behind it."""
    return b"".join(bytes.fromhex(line.partition("|")[0]) for line in text.strip().splitlines())


X86_64 = StubMachine(
    relocations=(7, 6),
    integers=6,
    trace=_code("""
        f3 0f 1e fa                     | endbr64
        50                              | push   %rax
        52                              | push   %rdx
        49 bb 11 11 11 11 11 11 11 11   | movabs $ring, %r11
        b8 01 00 00 00                  | mov    $1, %eax
        f0 49 0f c1 03                  | lock xadd %rax, (%r11)
        25 ff ff 00 00                  | and    $0xffff, %eax
        48 c1 e0 04                     | shl    $4, %rax
        49 01 c3                        | add    %rax, %r11
        41 c7 43 40 33 33 33 33         | movl   $number, 64(%r11)
        41 89 73 44                     | mov    %esi, 68(%r11)
        0f 31                           | rdtsc
        48 c1 e2 20                     | shl    $32, %rdx
        48 09 d0                        | or     %rdx, %rax
        49 89 43 48                     | mov    %rax, 72(%r11)
        5a                              | pop    %rdx
        58                              | pop    %rax
        ff 25 00 00 00 00               | jmp    *0(%rip)
        22 22 22 22 22 22 22 22         | .quad  target
    """),
    watch=_code("""
        f3 0f 1e fa                     | endbr64
        55                              | push   %rbp
        48 89 e5                        | mov    %rsp, %rbp
        48 83 e4 f0                     | and    $-16, %rsp
        48 81 ec e0 00 00 00            | sub    $224, %rsp
        48 89 3c 24                     | mov    %rdi, 0(%rsp)
        48 89 74 24 08                  | mov    %rsi, 8(%rsp)
        48 89 54 24 10                  | mov    %rdx, 16(%rsp)
        48 89 4c 24 18                  | mov    %rcx, 24(%rsp)
        4c 89 44 24 20                  | mov    %r8, 32(%rsp)
        4c 89 4c 24 28                  | mov    %r9, 40(%rsp)
        48 89 44 24 30                  | mov    %rax, 48(%rsp)
        4c 89 54 24 38                  | mov    %r10, 56(%rsp)
        0f 11 44 24 40                  | movups %xmm0, 64(%rsp)
        0f 11 4c 24 50                  | movups %xmm1, 80(%rsp)
        0f 11 54 24 60                  | movups %xmm2, 96(%rsp)
        0f 11 5c 24 70                  | movups %xmm3, 112(%rsp)
        0f 11 a4 24 80 00 00 00         | movups %xmm4, 128(%rsp)
        0f 11 ac 24 90 00 00 00         | movups %xmm5, 144(%rsp)
        0f 11 b4 24 a0 00 00 00         | movups %xmm6, 160(%rsp)
        0f 11 bc 24 b0 00 00 00         | movups %xmm7, 176(%rsp)
        48 8d 45 10                     | lea    16(%rbp), %rax
        48 89 84 24 c0 00 00 00         | mov    %rax, 192(%rsp)
        bf 33 33 33 33                  | mov    $number, %edi
        48 89 e6                        | mov    %rsp, %rsi
        48 b8 11 11 11 11 11 11 11 11   | movabs $callback, %rax
        ff d0                           | call   *%rax
        48 8b 3c 24                     | mov    0(%rsp), %rdi
        48 8b 74 24 08                  | mov    8(%rsp), %rsi
        48 8b 54 24 10                  | mov    16(%rsp), %rdx
        48 8b 4c 24 18                  | mov    24(%rsp), %rcx
        4c 8b 44 24 20                  | mov    32(%rsp), %r8
        4c 8b 4c 24 28                  | mov    40(%rsp), %r9
        48 8b 44 24 30                  | mov    48(%rsp), %rax
        4c 8b 54 24 38                  | mov    56(%rsp), %r10
        0f 10 44 24 40                  | movups 64(%rsp), %xmm0
        0f 10 4c 24 50                  | movups 80(%rsp), %xmm1
        0f 10 54 24 60                  | movups 96(%rsp), %xmm2
        0f 10 5c 24 70                  | movups 112(%rsp), %xmm3
        0f 10 a4 24 80 00 00 00         | movups 128(%rsp), %xmm4
        0f 10 ac 24 90 00 00 00         | movups 144(%rsp), %xmm5
        0f 10 b4 24 a0 00 00 00         | movups 160(%rsp), %xmm6
        0f 10 bc 24 b0 00 00 00         | movups 176(%rsp), %xmm7
        48 89 ec                        | mov    %rbp, %rsp
        5d                              | pop    %rbp
        ff 25 00 00 00 00               | jmp    *0(%rip)
        22 22 22 22 22 22 22 22         | .quad  target
    """),
)

AARCH64 = StubMachine(
    relocations=(1026, 1025),
    integers=8,
    trace=_code("""
        5f 24 03 d5                     |    bti  c
        e0 07 be a9                     |    stp  x0, x1, [sp, #-32]!
        e2 0b 00 f9                     |    str  x2, [sp, #16]
        30 02 00 58                     |    ldr  x16, ring
        00 7e 5f c8                     | 1: ldxr x0, [x16]
        02 04 00 91                     |    add  x2, x0, #1
        02 7e 11 c8                     |    stxr w17, x2, [x16]
        b1 ff ff 35                     |    cbnz w17, 1b
        00 3c 40 92                     |    and  x0, x0, #0xffff
        10 12 00 8b                     |    add  x16, x16, x0, lsl #4
        d1 01 00 18                     |    ldr  w17, number
        11 42 00 b9                     |    str  w17, [x16, #64]
        01 46 00 b9                     |    str  w1, [x16, #68]
        51 e0 3b d5                     |    mrs  x17, cntvct_el0
        11 26 00 f9                     |    str  x17, [x16, #72]
        e2 0b 40 f9                     |    ldr  x2, [sp, #16]
        e0 07 c2 a8                     |    ldp  x0, x1, [sp], #32
        b1 00 00 58                     |    ldr  x17, target
        20 02 1f d6                     |    br   x17
        1f 20 03 d5                     |    nop
        11 11 11 11 11 11 11 11         | ring:   .quad ring
        22 22 22 22 22 22 22 22         | target: .quad target
        33 33 33 33 00 00 00 00         | number: .quad number
    """),
    watch=_code("""
        5f 24 03 d5                     |    bti  c
        fd 7b bf a9                     |    stp  x29, x30, [sp, #-16]!
        fd 03 00 91                     |    mov  x29, sp
        ff 83 03 d1                     |    sub  sp, sp, #224
        e0 07 00 a9                     |    stp  x0, x1, [sp, #0]
        e2 0f 01 a9                     |    stp  x2, x3, [sp, #16]
        e4 17 02 a9                     |    stp  x4, x5, [sp, #32]
        e6 1f 03 a9                     |    stp  x6, x7, [sp, #48]
        e0 07 02 ad                     |    stp  q0, q1, [sp, #64]
        e2 0f 03 ad                     |    stp  q2, q3, [sp, #96]
        e4 17 04 ad                     |    stp  q4, q5, [sp, #128]
        e6 1f 05 ad                     |    stp  q6, q7, [sp, #160]
        a9 43 00 91                     |    add  x9, x29, #16
        e9 23 0c a9                     |    stp  x9, x8, [sp, #192]
        c0 02 00 18                     |    ldr  w0, number
        e1 03 00 91                     |    mov  x1, sp
        10 02 00 58                     |    ldr  x16, callback
        00 02 3f d6                     |    blr  x16
        e0 07 40 a9                     |    ldp  x0, x1, [sp, #0]
        e2 0f 41 a9                     |    ldp  x2, x3, [sp, #16]
        e4 17 42 a9                     |    ldp  x4, x5, [sp, #32]
        e6 1f 43 a9                     |    ldp  x6, x7, [sp, #48]
        e0 07 42 ad                     |    ldp  q0, q1, [sp, #64]
        e2 0f 43 ad                     |    ldp  q2, q3, [sp, #96]
        e4 17 44 ad                     |    ldp  q4, q5, [sp, #128]
        e6 1f 45 ad                     |    ldp  q6, q7, [sp, #160]
        e8 67 40 f9                     |    ldr  x8, [sp, #200]
        bf 03 00 91                     |    mov  sp, x29
        fd 7b c1 a8                     |    ldp  x29, x30, [sp], #16
        b1 00 00 58                     |    ldr  x17, target
        20 02 1f d6                     |    br   x17
        1f 20 03 d5                     |    nop
        11 11 11 11 11 11 11 11         | callback: .quad callback
        22 22 22 22 22 22 22 22         | target:   .quad target
        33 33 33 33 00 00 00 00         | number:   .quad number
    """),
)

MACHINES = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}


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
    machine = MACHINES.get(platform.machine().lower())
    if portable(os.environ):
        raise HooksUnavailableError("calls are traced on Linux only, and not by the portable runner")
    if machine is None or sys.byteorder != "little":
        raise HooksUnavailableError(f"calls are traced on x86-64 and aarch64 only, not on {platform.machine()}")
    libraries = loaded_libraries(directory)
    if not libraries:
        raise HooksUnavailableError("the package's library was not found among the mapped files")
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
