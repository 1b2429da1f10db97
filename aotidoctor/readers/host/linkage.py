"""Predict whether the loader accepts a package here: missing libraries and symbols, executable stacks.

Until glibc 2.40 ``dlopen`` made the stack executable; from 2.41 on it refuses a library that asks for it, unless the
tunable ``glibc.rtld.execstack=2`` made the stack executable at the start of the process. SELinux may refuse in any
case (``execstack``, ``execmem``). What a service manager or a container forbids a process by prctl or seccomp cannot
be seen from files.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from aotidoctor.model.artifact import Artifact, SharedObject, SymbolRef
from aotidoctor.model.case import MissingSymbol
from aotidoctor.model.record import record
from aotidoctor.readers.host.dynamic_loader import LibraryImage, LinkMap, defines_symbol, gnu_hash, library_path
from aotidoctor.readers.host.hardware import text_of_file
from aotidoctor.readers.package.elf import ElfError

# Libraries and symbols that nothing on this host provides.
_OPENMP = re.compile(r"^lib(gomp|iomp5|omp)[-.]")
# A package with many models repeats itself; this many objects show every library it could need.
_OBJECT_LIMIT = 8
# The libraries whose symbols have versions that packages ask for.
_VERSIONED = ("libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1")
# What the packages of any release and device name as NEEDED.
USUAL = (
    "libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so", "libc10_cuda.so", "libcuda.so.1",
    "libcudart.so.12", "libcudart.so.13", "libgomp.so.1", "libiomp5.so", "libomp.so.5", "libmkl_intel_lp64.so.2",
    "libmkl_core.so.2", "libmkl_intel_thread.so.2", *_VERSIONED[:3], "libm.so.6", "libdl.so.2", "libpthread.so.0",
    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
)  # fmt: skip


@record
class Linkage:
    """The result of linking a package here.

    ``libraries`` maps each NEEDED name to a file, None when not found. ``libcuda`` is the driver library of this
    process, None when there is none. ``openmp`` are OpenMP runtime files that would be loaded together.
    ``abi_versions`` maps a family of symbol versions to the newest one that its library defines.
    """

    libraries: Mapping[str, str | None] = field(default_factory=dict)
    missing: tuple[MissingSymbol, ...] = ()
    checked: int = 0
    problem: str | None = None
    openmp: tuple[str, ...] = ()
    libcuda: str | None = None
    abi_versions: Mapping[str, str] = field(default_factory=dict)


@record(frozen=False)
class _LoaderProcess:
    links: LinkMap
    scope: list[LibraryImage]
    loaded: list[LibraryImage]


def predict_linkage(
    artifact: Artifact | None, torch: Path | None, environ: Mapping[str, str], *, survey: bool = False
) -> Linkage:
    """Model a process with torch loaded and look up what ``artifact`` needs in it. Raises nothing for odd libraries.

    With ``survey`` the libraries that packages usually need are looked up instead.
    """
    try:
        process = _start(torch, environ)
        found = _link(process, artifact, torch)
        if survey:
            usual = {name: process.links.resolve(name, (), ()) for name in USUAL}
            found = replace(found, libraries={name: image.path if image else None for name, image in usual.items()})
        # Per family of symbol versions (`GLIBCXX`) the newest that its library defines (`3.4.30`).
        newest: dict[str, tuple[int, ...]] = {}
        for library in _VERSIONED:
            image = process.links.resolve(library, (), ())
            for version in image.versions.values() if image is not None else ():
                family, _, number = version.rpartition("_")
                parts = number.split(".")
                if family and all(part.isdecimal() for part in parts):
                    newest[family] = max(newest.get(family, ()), tuple(map(int, parts)))
    except (OSError, ElfError) as error:
        return Linkage(problem=f"the interpreter's libraries cannot be read: {error}")
    return replace(
        found, abi_versions={family: ".".join(map(str, number)) for family, number in sorted(newest.items())}
    )


def _link(process: _LoaderProcess, artifact: Artifact | None, torch: Path | None) -> Linkage:
    driver = process.links.resolve("libcuda.so.1", (), ())
    found = Linkage(openmp=_openmp(process.loaded), libcuda=None if driver is None else driver.path)
    if torch is None:
        return replace(found, problem="torch is not installed, so its libraries cannot be inspected")
    compiled = [item for model in (artifact.models if artifact else ()) for item in model.shared_objects]
    objects = [item for item in compiled if item.format == "elf" and not item.problem][:_OBJECT_LIMIT]
    foreign = sorted({str(item.machine) for item in objects} - {"None", platform.machine()})
    if foreign:
        return replace(found, problem=f"the package's code is for {', '.join(foreign)}")
    return _look_up(process, objects, found) if objects else found


def _start(torch: Path | None, environ: Mapping[str, str]) -> _LoaderProcess:
    folders: list[str] = []
    if torch is not None:
        # Folders of the CUDA wheels, which torch loads from by full path.
        with suppress(OSError):
            folders = sorted(entry.path for entry in os.scandir(torch.parent / "nvidia") if entry.is_dir())
    extra_dirs = tuple(f"{folder}/lib" for folder in folders)
    links = LinkMap(library_path=library_path(environ), extra_dirs=extra_dirs)
    scope = links.add_program(str(Path(sys.executable).resolve()))
    for path in re.split(r"[ :]+", environ.get("LD_PRELOAD", "").strip()):
        scope += links.add_file(path) if "/" in path else links.add_needed([path] if path else [], ())
    loaded = list(scope)
    if torch is not None:
        # torch opens this one with RTLD_GLOBAL, and its extension module without.
        scope += links.add_file(str(torch / "lib" / "libtorch_global_deps.so"))
        loaded = scope + links.add_file(str(torch / "lib" / "libtorch_python.so"))
    return _LoaderProcess(links=links, scope=_distinct(scope), loaded=_distinct(loaded))


def _look_up(process: _LoaderProcess, objects: list[SharedObject], found: Linkage) -> Linkage:
    libraries: dict[str, str | None] = {}
    missing: dict[tuple[str, str | None], MissingSymbol] = {}
    loaded = list(process.loaded)
    checked, unjudged = 0, 0
    try:
        for item in objects:
            scope = process.links.add_needed(item.needed, tuple(path for path in item.runpath if "ORIGIN" not in path))
            loaded += scope
            for name in item.needed:
                image = process.links.found.get(name)
                libraries[name] = image.path if image else None
            # A symbol without a version may come from the library that is not there.
            certain = all(libraries[name] for name in item.needed)
            wanted = [ref for ref in item.undefined if not ref.weak]
            checked += len(wanted)
            for ref in _absent(wanted, _distinct([*process.scope, *scope]), process.links):
                if ref.version is None and not certain:
                    unjudged += 1
                    continue
                missing[ref.name, ref.version] = MissingSymbol(
                    name=ref.name, version=ref.version, wanted_from=ref.library
                )
    except ElfError as error:
        return replace(found, libraries=libraries, problem=str(error), openmp=_openmp(loaded))
    return replace(
        found,
        libraries=libraries,
        missing=tuple(missing.values()),
        checked=checked - unjudged,
        problem=f"{unjudged} symbols may come from libraries that are not found" if unjudged else None,
        openmp=_openmp(loaded),
    )


def _absent(wanted: Iterable[SymbolRef], scope: list[LibraryImage], links: LinkMap) -> list[SymbolRef]:
    absent, order = [], list(scope)
    for ref in wanted:
        # Where in `scope` the first library stands that has the symbol.
        name = ref.name.encode()
        hashed = gnu_hash(name)
        at = next((at for at, image in enumerate(order) if defines_symbol(image, name, hashed, ref.version)), None)
        if at is not None:
            # The next symbol is likely to come from the same library.
            order.insert(0, order.pop(at))
        elif ref.version is None or ref.library is None or links.found.get(ref.library, ...) is not None:
            # When the library itself is missing, that is the finding, not each of its symbols.
            absent.append(ref)
    return absent


def _openmp(images: Iterable[LibraryImage]) -> tuple[str, ...]:
    files = (str(Path(image.path).resolve()) for image in images if _OPENMP.match(Path(image.path).name))
    return tuple(dict.fromkeys(files))


def _distinct(images: list[LibraryImage]) -> list[LibraryImage]:
    return list({image.path: image for image in images}.values())


# Executable stacks.
REFUSED_FROM = (2, 41)
_TUNABLE = re.compile(r"(?:^|:)glibc\.rtld\.execstack=(\d+)")


def executable_stack(glibc: str | None, environ: Mapping[str, str], root: str = "/") -> tuple[bool | None, str | None]:
    """``(permitted, why)``; None where it cannot be known from files."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", glibc or "")
    if found is None:
        return None, "the version of the C library is not known"
    if (int(found[1]), int(found[2])) >= REFUSED_FROM:
        setting = _TUNABLE.search(environ.get("GLIBC_TUNABLES", ""))
        if setting is None or setting[1] != "2":
            return False, f"glibc {glibc} refuses it (since 2.41)"
    if text_of_file(Path(root, "sys/fs/selinux/enforce")).strip() == "1":
        return None, "SELinux is enforcing, and its policy decides"
    return True, None
