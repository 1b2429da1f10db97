"""The package needs symbols, or versions of them, that nothing on this host provides.

What it does
    Looks up each undefined symbol of the shared object in the libraries that the process would have, through their hash
    tables, with the version that the package asks for. Looks also for the functions that torch will ask it for.

Why it matters
    Loading fails with "undefined symbol" or "version `GLIBC_2.38' not found". The cause is another torch, another C++
    ABI, or an older C or C++ library than on the build host. A missing AOTInductorModelContainerRun is only logged
    while loading; the call then jumps to address 0.

Example:
    aoti_torch_cpu_new_op: observed not provided by any library here, expected torch 2.14's libtorch_cpu.so

When it is wrong
    The symbol comes from a library that your program loads globally before the package. Weak symbols are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aotidoctor.checks.check import Check, Finder
from aotidoctor.checks.package.facts import NO_MODEL, at_member, listed, main_object, plural
from aotidoctor.model.artifact import SharedObject
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.host import MissingSymbol

FIND = Finder("AD-HOST-006", "abi_mismatch")
# The functions without which no loader since 2.5 gets to a result; it can do without the others.
ENTRY_POINTS = (
    "AOTInductorModelContainerCreateWithDevice",
    "AOTInductorModelContainerRun",
    "AOTInductorModelContainerGetNumOutputs",
    "AOTInductorModelContainerDelete",
)
_OLD_STRING_ABI = ("Ss", "SsE")


def run(case: Case) -> Sequence[Evidence] | NotChecked:
    """One finding per missing version, and one for all symbols without a version."""
    compiled = main_object(case)
    if compiled is None:
        return FIND.unchecked(NO_MODEL if case.model is None else "the model has no shared object")
    entry_points = _entry_points(case, compiled)
    if not case.host.symbols_checked:
        return entry_points or FIND.unchecked(case.host.symbols_problem or "symbols were not looked up")
    plain = [symbol for symbol in case.host.missing_symbols if symbol.version is None]
    versioned = [symbol for symbol in case.host.missing_symbols if symbol.version is not None]
    return [
        *entry_points,
        *_versions(case, compiled.member, versioned),
        *_symbols(case, compiled.member, plain),
    ]


def _entry_points(case: Case, compiled: SharedObject) -> list[Evidence]:
    if compiled.format != "elf" or compiled.problem:
        return []
    return [
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


def _versions(case: Case, member: str, missing: Iterable[MissingSymbol]) -> list[Evidence]:
    groups: dict[tuple[str, str], list[str]] = {}
    for symbol in missing:
        groups.setdefault((symbol.version or "", symbol.wanted_from or "?"), []).append(symbol.name)
    return [
        FIND.error(
            "version",
            version,
            observed=f"{library} here does not provide {version}",
            expected=f"{version}, for {listed(names, 3)}",
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


def _symbols(case: Case, member: str, missing: list[MissingSymbol]) -> list[Evidence]:
    if not missing:
        return []
    names = [symbol.name for symbol in missing]
    custom = case.options.custom_op_libraries or case.options.setup
    state = FIND.warn if custom else FIND.error
    torch = case.host.torch.version if case.host.torch else None
    built = case.contract.needs.torch_version if case.contract else None
    return [
        state(
            "symbol",
            names[0],
            observed=f"{plural(len(names), 'symbol')} not provided by any library here: {listed(names, 3)}",
            expected=f"libraries like those of the build host{f' (torch {built})' if built else ''}",
            source=at_member(case, member),
            facts={
                "symbols": tuple(names[:20]),
                "count": len(names),
                "torch_here": torch,
                "torch_built": built,
                "torch_shims": sum(name.startswith("aoti_torch_") for name in names),
                "cxx11_abi_here": case.host.torch.cxx11_abi if case.host.torch else None,
                "old_string_abi": any(name.endswith(_OLD_STRING_ABI) for name in names),
            },
        )
    ]


CHECK = Check(
    code=FIND.code,
    name=FIND.name,
    cause="abi-mismatch",
    stage="host",
    needs=("artifact_missing", "artifact_wrong_kind", "platform_mismatch"),
    run=run,
)
