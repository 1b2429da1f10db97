"""Make Mach-O libraries byte by byte, as Apple's ``mach-o/loader.h`` and ``nlist.h`` lay them out."""

from __future__ import annotations

import struct

from tests.artifacts.elfs import ENTRY_POINTS

ARM64, X86_64 = 0x0100000C, 0x01000007


def mach_o(
    cpu=ARM64,
    needed=("@rpath/libtorch_cpu.dylib",),
    rpath="@loader_path",
    least=(12, 0),
    signed=True,
    symbols=tuple((name, 0) for name in ENTRY_POINTS),
):
    """A thin library. ``symbols`` are ``(name, number of the library that has it, or 0)``, named as in C."""
    commands = [_named(0xC, name, 24) for name in needed]
    commands.append(_named(0x8000001C, rpath, 12))
    if least is not None:
        commands.append(struct.pack("<6I", 0x32, 24, 1, least[0] << 16 | least[1] << 8, 0, 0))
    if signed:
        commands.append(struct.pack("<4I", 0x1D, 16, 0, 0))
    at = 32 + sum(map(len, commands)) + 24
    texts, rows = b"\0", b""
    for name, library in symbols:
        kind = 0x01 if library else 0x0F
        rows += struct.pack("<IBBHQ", len(texts), kind, 0 if library else 1, library << 8, 0 if library else 0x1000)
        texts += f"_{name}".encode() + b"\0"
    commands.append(struct.pack("<6I", 0x2, 24, at, len(symbols), at + len(rows), len(texts)))
    body = b"".join(commands)
    return struct.pack("<8I", 0xFEEDFACF, cpu, 0, 6, len(commands), len(body), 0, 0) + body + rows + texts


def universal(*parts):
    """A universal library of ``(cpu, bytes)``."""
    head, body, at = struct.pack(">2I", 0xCAFEBABE, len(parts)), b"", 4096
    for cpu, data in parts:
        head += struct.pack(">5I", cpu, 0, at + len(body), len(data), 12)
        body += data
    return head.ljust(at, b"\0") + body


def _named(kind, name, start):
    text = name.encode() + b"\0"
    size = (start + len(text) + 7) // 8 * 8
    return (struct.pack("<3I", kind, size, start).ljust(start, b"\0") + text).ljust(size, b"\0")
