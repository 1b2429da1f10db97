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
    texts=(),
    held=0,
):
    """A thin library. ``symbols`` are ``(name, number of the library that has it, or 0)``, named as in C.

    ``texts`` are constants; ``held`` bytes at the end are a segment of their own.
    """
    cstring = b"".join(text.encode() + b"\0" for text in texts)
    commands = [_named(0xC, name, 24) for name in needed]
    commands.append(_named(0x8000001C, rpath, 12))
    if least is not None:
        commands.append(struct.pack("<6I", 0x32, 24, 1, least[0] << 16 | least[1] << 8, 0, 0))
    if signed:
        commands.append(struct.pack("<4I", 0x1D, 16, 0, 0))
    segments = bool(texts) * 152 + bool(held) * 72
    at = 32 + sum(map(len, commands)) + 24 + segments
    names, rows = b"\0", b""
    for name, library in symbols:
        kind = 0x01 if library else 0x0F
        rows += struct.pack("<IBBHQ", len(names), kind, 0 if library else 1, library << 8, 0 if library else 0x1000)
        names += f"_{name}".encode() + b"\0"
    commands.append(struct.pack("<6I", 0x2, 24, at, len(symbols), at + len(rows), len(names)))
    end = at + len(rows) + len(names)
    if texts:
        section = struct.pack("<16s16s2QI28x", b"__cstring", b"__TEXT", 0, len(cstring), end)
        commands.append(_segment(end, len(cstring), section))
    if held:
        commands.append(_segment(end + len(cstring), held))
    body = b"".join(commands)
    head = struct.pack("<8I", 0xFEEDFACF, cpu, 0, 6, len(commands), len(body), 0, 0)
    return head + body + rows + names + cstring + bytes(held)


def _segment(start, size, section=b""):
    head = struct.pack(
        "<2I16s4Q4I", 0x19, 72 + len(section), b"__DATA", 0, size, start, size, 0, 0, len(section) // 80, 0
    )
    return head + section


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
