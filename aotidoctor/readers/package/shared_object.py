"""Read the facts of a shared object in place: an ELF file here, those of Windows and macOS beside it.

Debug facilities are compiled in and cannot be switched on afterwards, so it matters which are there. Imported shims
tell most; strings of the read-only data tell the rest (the printer's level 3 only calls ``printf``).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.artifact import DebugFeatures, SharedObject, SymbolRef
from aotidoctor.model.printer_lines import LAUNCH_MARK
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob, opened_blob
from aotidoctor.readers.package.elf import DAMAGED, PT_LOAD, SHT_NOBITS, SHT_NULL, Elf, read_elf
from aotidoctor.readers.package.elf_symbols import (
    exported_names,
    read_dynamic,
    read_dynamic_symbols,
    read_kernel_symbols,
)
from aotidoctor.readers.package.package_layout import object_format
from aotidoctor.readers.package.pe_and_mach_o import read_mach_o, read_pe, text_spans

# Debug facilities compiled into the object.
_SCAN_LIMIT = 16 << 20
_CHECKS = b"AOTI_RUNTIME_CHECK_INPUTS\0"
_LAUNCH = LAUNCH_MARK.encode()


def read_features(text: bytes | None, undefined: Sequence[SymbolRef]) -> DebugFeatures:
    """Features of one object, by its texts and imports; None for those that need texts where there are none."""
    names = {symbol.name for symbol in undefined}
    level = None if text is None else 3 if _LAUNCH in text else 0
    if "aoti_torch_print_tensor_handle" in names:
        level = 2
    elif "aoti_torch_save_tensor_handle" in names:
        level = 1
    return DebugFeatures(
        input_checks=None if text is None else _CHECKS in text,
        printer_level=level,
        nan_asserts="aoti_torch_check_inf_and_nan" in names,
        kernel_profile=any("record_function" in name for name in names),
    )


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


# The object. Appended (mmapped) weights: the embedded constants are then 16 bytes, the length of the weights and a
# random number that is repeated as the last 8 bytes of the file.
MMAP_SPAN = 16
# Compilers pad code with no-op instructions; so many zero bytes in a row are a hole that a broken copy left.
BLANK_RUN = 512
LARGEST_CODE = 32 * 1024 * 1024


def read_shared_object(blob: Blob, member: str) -> SharedObject:
    """Read one shared object. Damage does not raise: ``problem`` describes it."""
    head = blob.read_at(0, 4096)
    form = object_format(head)
    base = SharedObject(member=member, format=form or "unknown", size=blob.size)
    match form:
        case "elf":
            return _read_elf_object(blob, base)
        case "pe" | "macho":
            found = read_pe(blob, base) if form == "pe" else read_mach_o(blob, base)
            spans = [one for one in text_spans(blob) if one.size <= _SCAN_LIMIT]
            text = b"".join(blob.read_at(one.offset, one.size) for one in spans) if spans else None
            return replace(found, features=read_features(text, found.undefined))
    return replace(base, problem=f"not a shared object: begins with {head[:8].hex(' ') or 'nothing'}")


def _read_elf_object(blob: Blob, base: SharedObject) -> SharedObject:
    try:
        elf = read_elf(blob)
    except DAMAGED as error:
        return replace(base, problem=f"ELF header: {error}")
    size, problem = _find_cut(elf)
    known = replace(
        base,
        machine=elf.machine,
        bits=elf.bits,
        type=elf.type,
        truncated_at=size,
        problem=problem,
        # Source lines, also compressed.
        has_debug_lines=any(elf.section(name) is not None for name in (".debug_line", ".zdebug_line")),
        executable_stack=elf.executable_stack,
    )
    if elf.type != "dyn":
        return replace(known, problem=problem or f"an ELF file of type {elf.type}, not a shared object")
    try:
        return _with_dynamic(elf, known)
    except DAMAGED as error:
        return replace(known, problem=problem or f"ELF dynamic section: {error}")


def _with_dynamic(elf: Elf, known: SharedObject) -> SharedObject:
    dynamic = read_dynamic(elf)
    symbols = read_dynamic_symbols(elf, dynamic)
    span = None if symbols.constants_at is None else symbols.constants_at[1] - symbols.constants_at[0]
    found = replace(
        known,
        needed=dynamic.needed,
        runpath=dynamic.runpath,
        undefined=symbols.undefined,
        defined_entry_points=symbols.entry_points,
        kernel_symbols=read_kernel_symbols(elf, dynamic),
        constants_span=span,
        features=read_features(_read_only_data(elf), symbols.undefined),
    )
    if found.problem is None:
        found = replace(found, problem=_blank_code(elf))
    if found.problem is None and symbols.constants_at is not None and span == MMAP_SPAN:
        constants_at = symbols.constants_at[0]
        length, magic = struct.unpack(f"{elf.order}2Q", elf.read_vaddr(constants_at, MMAP_SPAN).ljust(MMAP_SPAN, b"\0"))
        last = elf.blob.read_at(max(elf.blob.size - 8, 0), 8)
        # 16 bytes of real constants would not look like a small number followed by a huge one.
        if last == struct.pack(f"{elf.order}Q", magic) or not (8 < length < 1 << 48 and magic >= 1 << 32):
            return found
        words = (
            f"the {length} bytes of weights appended to it do not end with their marker: cut, or something was added"
        )
        return replace(found, truncated_at=elf.blob.size, problem=words)
    return found


def _blank_code(elf: Elf) -> str | None:
    """A description of machine code that was overwritten with zeros (a hole in a copied file); None without any."""
    for section in elf.sections:
        if section.name == ".text" and section.size <= LARGEST_CODE:
            at = elf.blob.read_at(section.offset, section.size).find(bytes(BLANK_RUN))
            return (
                None if at < 0 else f"its code contains only zeros from byte {section.offset + at} of the object onward"
            )
    return None


def _find_cut(elf: Elf) -> tuple[int | None, str | None]:
    """The size of a file that was cut, and the problem: None where it still loads.

    Segments beyond the end: it cannot load. Only sections beyond the end: it loads, debug information is lost.
    """
    size = elf.blob.size
    loads = [segment for segment in elf.segments if segment.type == PT_LOAD]
    end = max((segment.offset + segment.filesz for segment in loads), default=0)
    if end > size:
        return size, f"cut at {size} bytes: a segment that must be loaded ends at {end}"
    if not loads and elf.type == "dyn":
        return None, "nothing to load: no PT_LOAD segment"
    if any(segment.filesz > segment.memsz for segment in loads):
        return None, "a segment is larger in the file than in memory"
    sections = (s.offset + s.size for s in elf.sections if s.type not in {SHT_NOBITS, SHT_NULL})
    if elf.sections_problem is not None or max(sections, default=0) > size:
        return size, None
    return None, None


# Symbols whose names hold a given text.
_LARGEST_STRINGS = 64 << 20


@record
class NamedSymbols:
    """``exported`` are names that the dynamic loader finds; ``hidden`` are names of the object that it does not."""

    compiled: SharedObject
    exported: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def read_named_symbols(path: str, part: str) -> NamedSymbols:
    """Read the object at ``path``. Raises ``OSError``; damage does not raise: ``compiled.problem`` describes it."""
    with opened_blob(path) as (blob, _):
        compiled = read_shared_object(blob, Path(path).name)
        if compiled.format != "elf" or compiled.problem:
            return NamedSymbols(compiled=compiled)
        try:
            elf = read_elf(blob)
            exported = exported_names(elf, read_dynamic(elf), part)
        except DAMAGED:
            return NamedSymbols(compiled=compiled)
        section = elf.section(".strtab")
        names: set[str] = set()
        if section is not None and section.size <= _LARGEST_STRINGS:
            strings = blob.read_at(section.offset, section.size)
            found = re.findall(rb"(?<=\0)[^\0]*" + re.escape(part.encode()) + rb"[^\0]*(?=\0)", strings)
            names = {name.decode("utf-8", "backslashreplace") for name in found}
        return NamedSymbols(compiled=compiled, exported=exported, hidden=tuple(sorted(names - set(exported))))


# Texts: what read-only sections hold between zero bytes.
# Weights may lie in such a section too, and are not looked through.
LARGEST = 8 << 20


def read_texts(blob: Blob) -> Iterator[bytes]:
    """The texts of a library in order; none of another file."""
    try:
        if object_format(blob.read_at(0, 4096)) in ("pe", "macho"):
            spots = [(one.offset, one.size) for one in text_spans(blob)]
        else:
            spots = [(one.offset, one.size) for one in read_elf(blob).sections if one.name.startswith(".rodata")]
    except DAMAGED:
        return
    for start, size in spots:
        if size <= LARGEST:
            yield from blob.read_at(start, size).split(b"\0")
