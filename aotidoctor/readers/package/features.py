"""Debug facilities compiled into a shared object: they cannot be switched on afterwards, so it matters which are in.

Imported shims tell most; strings of the read-only data tell the rest (the printer's level 3 only calls ``printf``).
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.artifact import DebugFeatures, SymbolRef
from aotidoctor.readers.package.elf import PT_LOAD, Elf

_SCAN_LIMIT = 16 << 20
_CHECKS = b"AOTI_RUNTIME_CHECK_INPUTS\0"
_LAUNCH = b"before_launch: "


def read_features(elf: Elf, undefined: Sequence[SymbolRef]) -> DebugFeatures:
    """Features of one object; None for what needs strings when there were none to look at."""
    names = {symbol.name for symbol in undefined}
    text = _read_only_data(elf)
    return DebugFeatures(
        input_checks=None if text is None else _CHECKS in text,
        printer_level=_printer_level(names, text),
        nan_asserts="aoti_torch_check_inf_and_nan" in names,
        kernel_profile=any("record_function" in name for name in names),
    )


def has_debug_lines(elf: Elf) -> bool:
    """Whether the object tells source lines (``.debug_line``, also compressed)."""
    return elf.section(".debug_line") is not None or elf.section(".zdebug_line") is not None


def _printer_level(names: set[str], text: bytes | None) -> int | None:
    if "aoti_torch_print_tensor_handle" in names:
        return 2
    if "aoti_torch_save_tensor_handle" in names:
        return 1
    if text is None:
        return None
    return 3 if _LAUNCH in text else 0


def _read_only_data(elf: Elf) -> bytes | None:
    """``.rodata``, or without section headers every small segment. Never the weights, which have their own section."""
    section = elf.section(".rodata")
    if section is not None:
        return elf.blob.read_at(section.offset, section.size) if section.size <= _SCAN_LIMIT else None
    parts = [
        elf.blob.read_at(segment.offset, segment.filesz)
        for segment in elf.segments
        if segment.type == PT_LOAD and segment.filesz <= _SCAN_LIMIT
    ]
    return b"".join(parts) if parts else None
