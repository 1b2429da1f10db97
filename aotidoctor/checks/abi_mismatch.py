"""The package needs symbols, or versions of them, that nothing on this host provides.

What it does
    Looks up each undefined symbol of the shared object in the libraries that the process would have, through their hash
    tables, with the version that the package requires. It also looks for the functions that torch will call in it. For
    a different machine, known from its profile, the versions of its libraries and of its torch are compared instead.

Why it matters
    Loading fails with "undefined symbol" or "version `GLIBC_2.38' not found". The cause is a different torch, a
    different C++ ABI, or an older C or C++ library than on the build host. A missing AOTInductorModelContainerRun is
    only logged while loading; the call then jumps to address 0.

Example:
    aoti_torch_cpu_new_op: observed not provided by any library here, expected torch 2.14's libtorch_cpu.so

When it is wrong
    The symbol comes from a library that your program loads globally before the package. Weak symbols are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, at_member, link_to_profile, main_object
from aotidoctor.model.artifact import SharedObject
from aotidoctor.model.case import Case, MissingSymbol
from aotidoctor.model.evidence import Evidence, list_names, plural
from aotidoctor.readers.releases.torch_releases import (
    PREFIX,
    has_top_folder,
    is_shim,
    newest_release,
    release_of,
    release_text,
)

FIND = Finder("AD-HOST-006", "abi_mismatch")
# No loader since 2.5 gets to a result without these functions.
ENTRY_POINTS = (
    "AOTInductorModelContainerCreateWithDevice",
    "AOTInductorModelContainerRun",
    "AOTInductorModelContainerGetNumOutputs",
    "AOTInductorModelContainerDelete",
)
GLOBALLY = "import ctypes, torch; ctypes.CDLL(torch.__path__[0] + '/lib/libtorch.so', mode=ctypes.RTLD_GLOBAL)"
_OF_TORCH = ("libtorch", "libc10")
_OLD_STRING_ABI = ("Ss", "SsE")


def run(case: Case) -> Findings:
    """One finding per missing version, and one for all symbols without a version."""
    compiled = main_object(case)
    if compiled is None:
        return FIND.unchecked(NO_MODEL if case.model is None else "the model has no shared object")
    entry_points = _loader_needs(case, compiled)
    if case.host.profile is not None:
        linkage = link_to_profile(case.host, compiled)
        if linkage.unknown and not linkage.missing:
            return entry_points or FIND.unchecked(linkage.unknown)
        case = replace(case, host=replace(case.host, missing_symbols=linkage.missing, symbols_checked=1))
    if not case.host.symbols_checked:
        return entry_points or FIND.unchecked(case.host.symbols_problem or "symbols were not resolved")
    plain = [symbol for symbol in case.host.missing_symbols if symbol.version is None]
    versioned = [symbol for symbol in case.host.missing_symbols if symbol.version is not None]
    return [*entry_points, *_versions(case, compiled.member, versioned), *_symbols(case, compiled, plain)]


def _loader_needs(case: Case, compiled: SharedObject) -> list[Evidence]:
    """Findings about what the loader looks for: files at the places of its release, and exported functions."""
    found = []
    here = release_of(case.host.torch.version) if case.host.torch is not None else None
    if case.model is not None and has_top_folder(case.model) and here is not None and here < PREFIX:
        found.append(
            FIND.error(
                "release",
                case.artifact.prefix or "archive",
                observed=f"an archive with a top folder; built by torch {release_text(PREFIX)} or later",
                expected=f"no top folder, for the loader of torch {release_text(here)}",
                source=at_member(case, None),
                facts={"torch_needed": release_text(PREFIX), "torch_here": release_text(here)},
            )
        )
    if compiled.format == "elf" and not compiled.problem:
        found += [
            FIND.error(
                "entry-point",
                name,
                observed="not among the exported functions",
                expected="a function that the loader calls",
                source=at_member(case, compiled.member),
                facts={"symbol": name, "exported": len(compiled.defined_entry_points)},
            )
            for name in ENTRY_POINTS
            if name not in compiled.defined_entry_points
        ]
    return found


def _versions(case: Case, member: str, missing: Iterable[MissingSymbol]) -> list[Evidence]:
    groups: dict[tuple[str, str], list[str]] = {}
    for symbol in missing:
        groups.setdefault((symbol.version or "", symbol.wanted_from or "?"), []).append(symbol.name)
    return [
        FIND.error(
            "version",
            version,
            observed=f"{library} here does not provide {version}",
            expected=f"{version}, for {list_names(names, 3)}",
            source=at_member(case, member),
            facts={
                "version": version,
                "library": library,
                "file": case.host.libraries.get(library),
                "symbols": tuple(names[:20]),
                "glibc": case.host.glibc,
            },
        )
        for (version, library), names in groups.items()
    ]


def _may_bring_more(case: Case) -> bool:
    """Whether the user loads libraries whose symbols were not read."""
    return bool(case.options.custom_op_libraries or case.options.setup)


def _unlinked(case: Case, compiled: SharedObject, names: list[str]) -> Evidence:
    state = FIND.warn if _may_bring_more(case) else FIND.error
    return state(
        "unlinked",
        "libtorch.so",
        observed=f"not among the needed libraries of the shared object, although it uses {plural(len(names), 'symbol')}"
        f" of it: {list_names(names, 3)}",
        expected="libtorch.so among its libraries (aot_inductor.link_libtorch)",
        source=at_member(case, compiled.member),
        facts={
            "symbols": tuple(names[:20]),
            "count": len(names),
            "remedy": "Compile it with aot_inductor.link_libtorch=True, or make libtorch's symbols global first.",
            "command": GLOBALLY,
        },
    )


def _symbols(case: Case, compiled: SharedObject, missing: list[MissingSymbol]) -> list[Evidence]:
    if not missing:
        return []
    names = [symbol.name for symbol in missing]
    # It calls torch but needs no library of torch: it was not linked with one, on whatever host.
    if any(map(is_shim, names)) and not any(library.startswith(_OF_TORCH) for library in compiled.needed):
        return [_unlinked(case, compiled, names)]
    state = FIND.warn if _may_bring_more(case) else FIND.error
    torch = case.host.torch.version if case.host.torch else None
    built = case.needs.torch_version
    here = release_of(torch) if torch is not None else None
    newest = newest_release(names) if here is not None and any(map(is_shim, names)) else None
    # The release that added the newest of the missing shims, and that shim; None if torch here is not older.
    newer = (release_text(newest[0]), newest[1]) if newest and here and newest[0] > here else None
    return [
        state(
            "symbol",
            newer[1] if newer else names[0],
            observed=f"{plural(len(names), 'symbol')} not provided by any library here: {list_names(names, 3)}"
            + (f"; built by torch {newer[0]} or later: torch {torch} does not have {newer[1]}" if newer else ""),
            expected=f"torch {newer[0]} or later"
            if newer
            else f"libraries like those of the build host{f' (torch {built})' if built else ''}",
            source=at_member(case, compiled.member),
            facts={
                "symbols": tuple(names[:20]),
                "count": len(names),
                "torch_here": torch,
                "torch_built": built,
                "torch_needed": newer[0] if newer else None,
                "torch_shims": sum(name.startswith("aoti_torch_") for name in names),
                "cxx11_abi_here": case.host.torch.cxx11_abi if case.host.torch else None,
                "old_string_abi": any(name.endswith(_OLD_STRING_ABI) for name in names),
            },
        )
    ]


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "platform_mismatch"))
