"""Which GPUs a piece of device code is for: ``sm_90``, ``compute_90`` (PTX), ``gfx942``, ``spirv``, ``intelgt``.

``sm_90a`` (arch-specific, as Triton compiles for Hopper) is reported as ``sm_90a``: such code runs on that capability
only, and has no successors it would run on.
"""

from __future__ import annotations

import struct

from aotidoctor.readers.package.blob import Blob
from aotidoctor.readers.package.elf import ElfError, read_header

SUFFIXES = (".cubin", ".fatbin", ".hsaco", ".spv", ".zebin")

_EM_CUDA, _EM_AMDGPU, _EM_INTELGT = 190, 224, 205
_FATBIN = b"\x50\xed\x55\xba"
_SPIRV = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")
_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_PTX, _CUBIN = 1, 2
_ACCELERATED = 0x800
_MAX_FAT_ENTRIES = 256

# EF_AMDGPU_MACH of LLVM's AMDGPU usage page, GPUs that PyTorch supports.
_GFX = {
    0x2C: "gfx900", 0x2F: "gfx906", 0x30: "gfx908", 0x3F: "gfx90a", 0x40: "gfx940", 0x4B: "gfx941", 0x4C: "gfx942",
    0x4F: "gfx950", 0x33: "gfx1010", 0x35: "gfx1012", 0x36: "gfx1030", 0x37: "gfx1031", 0x38: "gfx1032",
    0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103", 0x43: "gfx1150", 0x4A: "gfx1151",
    0x48: "gfx1200", 0x4E: "gfx1201",
}  # fmt: skip


def gpu_targets(blob: Blob) -> tuple[str, ...]:
    """Targets of one file of device code, in file order; empty when the format is not known."""
    head = blob.read_at(0, 64)
    if head.startswith(b"\x7fELF"):
        target = _elf_target(head)
        return () if target is None else (target,)
    if head.startswith(_FATBIN):
        return _fatbin_targets(blob)
    if head.startswith(_SPIRV):
        return ("spirv",)
    if head.startswith(_BUNDLE):
        return _bundle_targets(blob.read_at(0, 1 << 16))
    return ()


def _elf_target(head: bytes) -> str | None:
    try:
        header = read_header(head)
    except ElfError:
        return None
    if header.machine == _EM_CUDA:
        return _sm_of_flags(header.flags, abi=head[8])
    if header.machine == _EM_AMDGPU:
        return _GFX.get(header.flags & 0xFF, f"gfx-mach-{header.flags & 0xFF:#x}")
    # The device of a zebin stands in its notes, for Intel's driver to judge.
    return "intelgt" if header.machine == _EM_INTELGT else None


def _sm_of_flags(flags: int, *, abi: int) -> str:
    if abi >= 8:
        # CUDA 13 moved the capability one byte up; "a" and "f" variants have their own bits there.
        return f"sm_{flags >> 8 & 0xFF}{'a' if flags & 0x8 else ''}"
    return f"sm_{flags & 0xFF}{'a' if flags & _ACCELERATED else ''}"


def _fatbin_targets(blob: Blob) -> tuple[str, ...]:
    """A 16-byte header, then entries: kind, header size, payload size, and the capability at offset 28."""
    header = blob.read_at(0, 16)
    position = int(struct.unpack_from("<H", header.ljust(16, b"\0"), 6)[0])
    found: list[str] = []
    for _ in range(_MAX_FAT_ENTRIES):
        entry = blob.read_at(position, 64)
        if len(entry) < 64:
            break
        kind, _, length, size = struct.unpack_from("<HHIQ", entry)
        capability = int(struct.unpack_from("<I", entry, 28)[0])
        if length < 32 or kind not in (_PTX, _CUBIN):
            break
        found.append(_fat_entry_target(blob, kind, position + length, capability))
        position += length + size
    return tuple(dict.fromkeys(found))


def _fat_entry_target(blob: Blob, kind: int, payload: int, capability: int) -> str:
    if kind == _PTX:
        return f"compute_{capability}"
    # The payload may be compressed; when it is not, its own header knows the "a".
    inner = blob.read_at(payload, 64)
    target = _elf_target(inner) if inner.startswith(b"\x7fELF") else None
    return target or f"sm_{capability}"


def _bundle_targets(data: bytes) -> tuple[str, ...]:
    """Clang's offload bundle: a count, then offset, size, and a name like ``hipv4-amdgcn-amd-amdhsa--gfx942``."""
    found = []
    position = len(_BUNDLE) + 8
    count = int.from_bytes(data[len(_BUNDLE) : position], "little")
    for _ in range(min(count, 64)):
        length = int.from_bytes(data[position + 16 : position + 24], "little")
        name = data[position + 24 : position + 24 + length].decode("ascii", "replace")
        position += 24 + length
        target = name.rpartition("--")[2]
        if target.startswith("gfx"):
            found.append(target.partition(":")[0])
    return tuple(dict.fromkeys(found))
