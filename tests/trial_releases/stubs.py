"""Stand-ins for the CUDA libraries of a CUDA build of PyTorch, so that it can be imported without gigabytes of them.

Every library that something in ``torch/lib`` needs, and that is neither there nor on the system, becomes a shared object
of some kilobytes in ``torch/lib``, with the functions that are asked of it. All of them do nothing; those that count
devices find none. Needs gcc.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

NO_DEVICE = 100
# Loaded where there is a driver only.
DRIVER = "libcuda.so.1"
BODIES = {
    "cudaGetDeviceCount": f"int cudaGetDeviceCount(int *n) {{ *n = 0; return {NO_DEVICE}; }}",
    "cudaGetDevice": f"int cudaGetDevice(int *n) {{ *n = 0; return {NO_DEVICE}; }}",
    "cudaGetErrorString": 'const char *cudaGetErrorString(int e) { return "no CUDA-capable device is detected"; }',
    "cudaGetErrorName": 'const char *cudaGetErrorName(int e) { return "cudaErrorNoDevice"; }',
    "cudaDriverGetVersion": "int cudaDriverGetVersion(int *n) { *n = 0; return 0; }",
    "cudaRuntimeGetVersion": "int cudaRuntimeGetVersion(int *n) { *n = 12000; return 0; }",
    "__cudaRegisterFatBinary": "static void *kept[4]; void **__cudaRegisterFatBinary(void *p) { return kept; }",
}
_OF_CUDA = re.compile(r"(?:cu|nv|nccl|__cuda|_?cudnn|cupti)")


@dataclass
class Library:
    """What one shared object needs and offers; ``wanted`` is (symbol, library or None, version or None)."""

    needed: list[str] = field(default_factory=list)
    offered: set[str] = field(default_factory=set)
    wanted: list[tuple[str, str | None, str | None]] = field(default_factory=list)


def make_stubs(folder: Path) -> list[str]:
    """Write what is missing to ``folder`` (``torch/lib``); the names of the libraries that were made."""
    libraries = {path.name: _read(path) for path in sorted(folder.glob("*.so*"))}
    needed = dict.fromkeys(name for one in libraries.values() for name in one.needed)
    system = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.split()
    missing = [name for name in needed if name not in {*libraries, *system, DRIVER} and not name.startswith("ld-")]
    if not missing:
        return []
    offered = set().union(*(one.offered for one in libraries.values()))
    # Symbols that no version ties to a library must be in one that is loaded at once.
    first = next(name for name in libraries["libtorch_cuda.so"].needed if name in missing)
    functions: dict[str, dict[str, str | None]] = {name: {} for name in missing}
    for one in libraries.values():
        for symbol, owner, version in one.wanted:
            if owner in functions:
                functions[owner][symbol] = version
            elif owner is None and symbol not in offered and _OF_CUDA.match(symbol):
                functions[first].setdefault(symbol, None)
    for name, symbols in functions.items():
        _compile(folder / name, symbols)
    return missing


def _read(path: Path) -> Library:
    with path.open("rb") as file:
        elf = ELFFile(file)
        dynamic, symbols = elf.get_section_by_name(".dynamic"), elf.get_section_by_name(".dynsym")
        if dynamic is None or symbols is None:
            return Library()
        found = Library(needed=[tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"])
        names = dict(_versions(elf))
        indices = elf.get_section_by_name(".gnu.version")
        for at, symbol in enumerate(symbols.iter_symbols()):
            if symbol["st_shndx"] != "SHN_UNDEF":
                found.offered.add(symbol.name)
            elif symbol["st_info"]["bind"] != "STB_WEAK" and symbol.name:
                index = indices.get_symbol(at)["ndx"] if indices is not None else None
                owner, version = names.get(index & 0x7FFF, (None, None)) if isinstance(index, int) else (None, None)
                found.wanted.append((symbol.name, owner, version))
        return found


def _versions(elf: ELFFile) -> Iterator[tuple[int, tuple[str, str]]]:
    """Index of a version -> (library, version)."""
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for library, versions in section.iter_versions():
                for version in versions:
                    yield version["vna_other"] & 0x7FFF, (library.name, version.name)


def _compile(target: Path, symbols: dict[str, str | None]) -> None:
    nodes: dict[str, list[str]] = {}
    for symbol, version in symbols.items():
        if version:
            nodes.setdefault(version, []).append(symbol)
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder) / "stub.c", Path(folder) / "versions"
        source.write_text("\n".join(BODIES.get(name, f"long {name}(void) {{ return 0; }}") for name in symbols) + "\n")
        script.write_text("".join(f"{node} {{ global: {'; '.join(names)}; }};\n" for node, names in nodes.items()))
        command = ["gcc", "-w", "-shared", "-fPIC", "-fno-builtin", f"-Wl,-soname,{target.name}", "-o", str(target)]
        subprocess.run([*command, str(source), *([f"-Wl,--version-script={script}"] if nodes else [])], check=True)
