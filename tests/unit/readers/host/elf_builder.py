"""A minimal 64-bit little-endian shared object, built byte by byte: no compiler, no process."""

from __future__ import annotations

import os
import struct

from aotidoctor.readers.host.dynamic_loader import gnu_hash

MACHINES = {"x86_64": 62, "aarch64": 183}


def shared_object(
    defined=(), *, needed=(), soname=None, runpath=None, rpath=None, versions=(), hash_style="gnu", machine=None
):
    """``defined`` are names or ``(name, version)``; ``versions`` are the versions the library defines, in order."""
    symbols = [entry if isinstance(entry, tuple) else (entry, None) for entry in defined]
    buckets = max(len(symbols) // 2, 1)
    if hash_style == "gnu":
        symbols.sort(key=lambda entry: gnu_hash(entry[0].encode()) % buckets)
    strings = _Strings()
    names = [strings.add(name) for name, _ in symbols]
    dynamic = [(1, strings.add(name)) for name in needed]
    for tag, text in ((14, soname), (29, runpath), (15, rpath)):
        if text is not None:
            dynamic.append((tag, strings.add(text)))
    version_names = [strings.add(version) for version in versions]

    blocks = {
        6: bytes(24) + b"".join(struct.pack("<IBBHQQ", name, 0x12, 0, 1, 0x1000, 8) for name in names),
        0x6FFFFEF5 if hash_style == "gnu" else 4: _gnu(symbols, buckets) if hash_style == "gnu" else _sysv(symbols),
    }
    if versions:
        index = {version: number + 2 for number, version in enumerate(versions)}
        blocks[0x6FFFFFF0] = struct.pack(f"<{len(symbols) + 1}H", 0, *(index.get(version, 1) for _, version in symbols))
        blocks[0x6FFFFFFC] = b"".join(
            struct.pack("<HHHHIII", 1, 0, number + 2, 1, 0, 20, 28 if number + 1 < len(versions) else 0)
            + struct.pack("<II", name, 0)
            for number, name in enumerate(version_names)
        )
        dynamic.append((0x6FFFFFFD, len(versions)))
    blocks[5] = bytes(strings.data)
    return _assemble(blocks, dynamic, MACHINES[machine or os.uname().machine])


class _Strings:
    def __init__(self):
        self.data = bytearray(b"\0")

    def add(self, text):
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset


def _gnu(symbols, buckets):
    hashes = [gnu_hash(name.encode()) for name, _ in symbols]
    bloom = 0
    for value in hashes:
        bloom |= (1 << (value % 64)) | (1 << ((value >> 6) % 64))
    heads = [0] * buckets
    chain = []
    for position, value in enumerate(hashes):
        bucket = value % buckets
        heads[bucket] = heads[bucket] or position + 1
        last = position + 1 == len(hashes) or hashes[position + 1] % buckets != bucket
        chain.append((value & ~1) | int(last))
    return struct.pack("<IIIIQ", buckets, 1, 1, 6, bloom) + struct.pack(f"<{len(heads) + len(chain)}I", *heads, *chain)


def _sysv(symbols):
    # One bucket: every symbol is in one chain.
    count = len(symbols) + 1
    chain = [0, *(number + 1 if number < len(symbols) else 0 for number in range(1, count))]
    return struct.pack(f"<III{count}I", 1, count, 1 if symbols else 0, *chain)


def _assemble(blocks, dynamic, machine):
    position = 64 + 2 * 56
    body = bytearray()
    entries = list(dynamic)
    for tag, data in blocks.items():
        padding = -len(body) % 8
        body += bytes(padding) + data
        entries.append((tag, position + len(body) - len(data)))
    body += bytes(-len(body) % 8)
    at = position + len(body)
    table = b"".join(struct.pack("<QQ", tag, value) for tag, value in [*entries, (0, 0)])
    size = at + len(table)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096)
    dyn = struct.pack("<IIQQQQQQ", 2, 6, at, at, at, len(table), len(table), 8)
    return header + load + dyn + bytes(body) + table
