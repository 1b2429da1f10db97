"""Make libraries of Windows byte by byte, as Microsoft's "PE Format" lays them out."""

from __future__ import annotations

import struct

from tests.artifacts.elfs import ENTRY_POINTS

AMD64, ARM64 = 0x8664, 0xAA64
_AT = 0x1000
_START = 0x400


def pe(
    machine=AMD64,
    imports=(("torch_cpu.dll", ("aoti_torch_empty_strided",)), ("KERNEL32.dll", ("Sleep",))),
    exports=ENTRY_POINTS,
    texts=(),
):
    """A DLL of 64 bits with one section. ``imports`` are ``(library, names of functions)``."""
    data = bytearray(b"".join(text.encode() + b"\0" for text in texts))

    def put(raw):
        data.extend(bytes(-len(data) % 8))
        data.extend(raw)
        return _AT + len(data) - len(raw)

    rows = b""
    for library, names in imports:
        hints = [put(b"\0\0" + name.encode() + b"\0") for name in names]
        table = put(struct.pack(f"<{len(hints) + 1}Q", *hints, 0))
        rows += struct.pack("<5I", table, 0, 0, put(library.encode() + b"\0"), table)
    imports_at = put(rows + bytes(20))
    names_at = put(b"".join(struct.pack("<I", put(name.encode() + b"\0")) for name in sorted(exports)))
    exports_at = put(struct.pack("<5I5I", 0, 0, 0, 0, 1, len(exports), len(exports), names_at, names_at, names_at))
    optional = struct.pack("<H", 0x20B).ljust(112, b"\0") + struct.pack("<4I", exports_at, 40, imports_at, len(rows))
    optional = optional.ljust(240, b"\0")
    head = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64) + b"PE\0\0"
    head += struct.pack("<2H12x2H", machine, 1, len(optional), 0x2022) + optional
    head += struct.pack("<8s4I16x", b".rdata", len(data), _AT, len(data), _START)
    return head.ljust(_START, b"\0") + bytes(data)
