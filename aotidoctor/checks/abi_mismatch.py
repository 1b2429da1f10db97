"""The package needs symbols, or versions of them, that nothing on this host provides.

What it does
    Looks up each undefined symbol of the shared object in the libraries that the process would have, through their hash
    tables, with the version that the package requires. It also looks for the functions that torch will call in it. For
    a different machine, known from its profile, the versions of its libraries and of its torch are compared instead.
    Code in an ExecuTorch program calls ExecuTorch's own runtime, whose functions are compared by its release.
    Of an artifact of torch.compile it compares the torch, Python, toolkit and Triton that made it.

Why it matters
    Loading fails with "undefined symbol" or "version `GLIBC_2.38' not found". The cause is a different torch, a
    different C++ ABI, or an older C or C++ library than on the build host. A missing AOTInductorModelContainerRun is
    only logged while loading; the call then jumps to address 0. ExecuTorch loads code with a missing function, and the
    first call ends the process with status 127.

Example:
    aoti_torch_cpu_new_op: observed not provided by any library here, expected torch 2.14's libtorch_cpu.so

When it is wrong
    The symbol comes from a library that your program loads globally before the package. Weak symbols are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import (
    NO_MODEL,
    NOT_STATED,
    at_member,
    device_of,
    link_to_profile,
    main_object,
)
from aotidoctor.model.artifact import SharedObject
from aotidoctor.model.case import Case, MissingSymbol
from aotidoctor.model.evidence import list_names, plural
from aotidoctor.model.other_artifacts import Precompiled
from aotidoctor.readers.releases.torch_releases import (
    PREFIX,
    Release,
    has_top_folder,
    is_shim,
    newest_release,
    release_of,
    release_text,
    shim_table,
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
_MAKE_AGAIN = "Make the file again with the torch, Python and Triton that will load it."
_KEY = "python -c 'from torch._inductor.codecache import torch_key; print(torch_key().hex())'"
_OLD_STRING_ABI = ("Ss", "SsE")


def run(case: Case) -> Observations:
    """One finding per missing version, and one for all symbols without a version."""
    if case.artifact.precompiled is not None:
        yield from _made_by(case, case.artifact.precompiled)
        return
    compiled = main_object(case)
    if compiled is None:
        yield FIND.unchecked(NO_MODEL if case.model is None else "the model has no shared object")
        return
    yield from _loader_needs(case, compiled)
    if case.artifact.executorch is not None:
        yield from _in_executorch(case, compiled)
        return
    missing = case.host.missing_symbols
    if case.host.profile is not None:
        missing, unstated = link_to_profile(case.host, compiled)
        if unstated:
            yield FIND.unchecked(unstated)
    elif not case.host.symbols_checked:
        yield FIND.unchecked(case.host.symbols_problem or "symbols were not resolved")
        return
    yield from _versions(case, compiled.member, [symbol for symbol in missing if symbol.version is not None])
    yield from _symbols(case, compiled, [symbol.name for symbol in missing if symbol.version is None])


# Since then a file of aot_compile begins with a mark.
_MARKED: Release = (2, 15)


def _made_by(case: Case, found: Precompiled) -> Observations:
    """The versions of the process that made an artifact of torch.compile: its loader wants the very same."""
    host, torch = case.host, case.host.torch
    here = {
        "torch": torch.version if torch is not None else None,
        "python": None if "python" in host.unstated else host.python,
        "toolkit": (torch.cuda or torch.xpu) if torch is not None else None,
        "triton": ".".join(host.packages["triton"].split(".")[:2]) if "triton" in host.packages else None,
    }
    made: dict[str, str] = {}
    for function in found.functions[:1]:
        compared = ("torch", "python", *(("toolkit", "triton") if function.device_type in ("cuda", "xpu") else ()))
        made = {name: version for name in compared if (version := getattr(function, name)) is not None}
    other = {name: version for name, version in made.items() if not _same_version(version, here[name])}
    unknown = [f"{name} {version}" for name, version in other.items() if here[name] is None]
    for name, version in other.items():
        if here[name] is not None:
            yield FIND.error(
                f"made-by-{name}",
                name,
                observed=f"made by {name} {version}",
                expected=f"{name} {here[name]}, as here",
                message=f"the file was made by {name} {version}, and this host has {here[name]}: its loader "
                "refuses any other version, and names that of this host as if it were the file's",
                source=at_member(case, None),
                facts={"what": name, "made": version, "here": here[name] or "", "remedy": _MAKE_AGAIN},
            )
    if found.damage is not None:
        return
    if len(unknown) == len(other):
        yield from _mark(case, found)
    if found.torch_key is not None or found.form in ("mega-cache", "standalone-unpacked", "vllm-cache"):
        key = f" ({found.torch_key[:16]}...)" if found.torch_key else ""
        unknown.append(f"the torch that made it, of which it has only a hash{key}; that torch prints its own: {_KEY}")
    if unknown:
        yield FIND.unchecked(f"not compared: {'; '.join(unknown)}")


def _mark(case: Case, found: Precompiled) -> Observations:
    """The mark at the beginning of a file of aot_compile, which old releases do not read and new ones want."""
    release = release_of(case.host.torch.version) if case.host.torch is not None else None
    if not found.form.startswith("aot-compile") or release is None or found.magic == (release >= _MARKED):
        return
    mark, wanted = ("with" if marked else "without" for marked in (found.magic, not found.magic))
    yield FIND.error(
        "made-by-torch",
        "torch",
        observed=f"a file {mark} the mark PT2AOT",
        expected=f"one {wanted} it, for torch {release_text(release)}",
        source=at_member(case, None),
        facts={"what": "torch", "remedy": _MAKE_AGAIN},
    )


def _same_version(made: str, here: str | None) -> bool:
    """Exactly the same; a host that states less (``2.14``, ``2.14.1`` without a build) fits all that it may be."""
    if here is None or "+" in here:
        return made == here
    return f"{made.partition('+')[0]}.".startswith(f"{here}.")


def _loader_needs(case: Case, compiled: SharedObject) -> Observations:
    """Findings about what the loader looks for: files at the places of its release, and exported functions."""
    here = release_of(case.host.torch.version) if case.host.torch is not None else None
    if case.model is not None and has_top_folder(case.model) and here is not None and here < PREFIX:
        yield FIND.error(
            "release",
            case.artifact.prefix or "archive",
            observed=f"an archive with a top folder; built by torch {release_text(PREFIX)} or later",
            expected=f"no top folder, for the loader of torch {release_text(here)}",
            source=at_member(case, None),
            facts={"torch_needed": release_text(PREFIX), "torch_here": release_text(here)},
        )
    # A stripped library of macOS has its names in a table that is not read.
    if (compiled.format in ("elf", "pe") or compiled.defined_entry_points) and not compiled.problem:
        for name in ENTRY_POINTS:
            if name not in compiled.defined_entry_points:
                yield FIND.error(
                    "entry-point",
                    name,
                    observed="not among the exported functions",
                    expected="a function that the loader calls",
                    source=at_member(case, compiled.member),
                    facts={"symbol": name, "exported": len(compiled.defined_entry_points)},
                )


def _versions(case: Case, member: str, missing: Iterable[MissingSymbol]) -> Observations:
    groups: dict[tuple[str, str], list[str]] = {}
    for symbol in missing:
        groups.setdefault((symbol.version or "", symbol.wanted_from or "?"), []).append(symbol.name)
    for (version, library), names in groups.items():
        yield FIND.error(
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


def _symbols(case: Case, compiled: SharedObject, names: list[str]) -> Observations:
    if not names:
        return
    # The user may load libraries whose symbols were not read.
    state = FIND.warn if case.options.custom_op_libraries or case.options.setup else FIND.error
    # It calls torch but needs no library of torch: it was not linked with one, on whatever host.
    if any(map(is_shim, names)) and not any(library.startswith(_OF_TORCH) for library in compiled.needed):
        yield state(
            "unlinked",
            "libtorch.so",
            observed="not among the needed libraries of the shared object, although it uses "
            f"{plural(len(names), 'symbol')} of it: {list_names(names, 3)}",
            expected="libtorch.so among its libraries (aot_inductor.link_libtorch)",
            source=at_member(case, compiled.member),
            facts={
                "symbols": tuple(names[:20]),
                "count": len(names),
                "remedy": "Compile it with aot_inductor.link_libtorch=True, or make libtorch's symbols global first.",
                "command": GLOBALLY,
            },
        )
        return
    torch = case.host.torch.version if case.host.torch else None
    built = case.needs.torch_version
    here = release_of(torch) if torch is not None else None
    newest = newest_release(names) if here is not None and any(map(is_shim, names)) else None
    # The release that added the newest of the missing shims, and that shim; None if torch here is not older.
    newer = (release_text(newest[0]), newest[1]) if newest and here and newest[0] > here else None
    yield state(
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


# Code in an ExecuTorch program.
def _runtime(case: Case, compiled: SharedObject) -> str:
    """Which of ExecuTorch's runtimes has the functions that the code imports."""
    return "windows" if compiled.format == "pe" else "metal" if device_of(case) == "mps" else "cuda"


def _in_executorch(case: Case, compiled: SharedObject) -> Observations:
    """Findings about ExecuTorch's runtime, and of a profile about the versions of its libraries."""
    yield from _runtime_shims(case, compiled)
    newest, unknown = newest_shim(case, compiled), []
    if newest is not None and release_of(case.host.packages.get("executorch", "")) is None:
        release = release_text(newest[0])
        unknown.append(
            f"its runtime must be ExecuTorch {release} or later, which has {newest[1]}; which one will run it is not "
            f"known: give it as --host executorch-{release}"
            if case.host.profile is None
            else f"the profile {case.host.profile}{NOT_STATED}executorch"
        )
    if case.host.profile is not None:
        others = tuple(ref for ref in compiled.undefined if not is_shim(ref.name))
        missing, unstated = link_to_profile(case.host, replace(compiled, undefined=others))
        yield from _versions(case, compiled.member, missing)
        unknown += [unstated] if unstated else []
    if unknown:
        yield FIND.unchecked("; ".join(unknown))


def newest_shim(case: Case, compiled: SharedObject) -> tuple[Release, str] | None:
    """The release of ExecuTorch that first had all that the code imports, and the function that tells."""
    return newest_release((ref.name for ref in compiled.undefined), _runtime(case, compiled))


def _runtime_shims(case: Case, compiled: SharedObject) -> Observations:
    """The finding for functions that ExecuTorch's runtime does not have, in the host's release or in any known one."""
    runtime = _runtime(case, compiled)
    table, here = shim_table(runtime), release_of(case.host.packages.get("executorch", ""))
    last = table.releases[-1]
    known = here is not None and here <= last
    names = [ref.name for ref in compiled.undefined if not ref.weak and is_shim(ref.name)]
    missing = [name for name in names if not table.has(name, here if here is not None and known else last)]
    if not missing:
        return
    newest = newest_release(missing, runtime) if all(name in table.first for name in missing) else None
    if newest is not None:
        expected = f"ExecuTorch {release_text(newest[0])} or later"
    else:
        expected = (
            f"functions of ExecuTorch's {runtime} runtime, none of whose releases to {release_text(last)} has them"
        )
    whose = f"ExecuTorch {release_text(here)}" if here is not None and known else f"ExecuTorch to {release_text(last)}"
    # What comes after the last one that is known may have them.
    yield (FIND.error if known else FIND.warn)(
        "symbol",
        newest[1] if newest is not None else missing[0],
        observed=f"{plural(len(missing), 'function')} not in the runtime of {whose}: {list_names(missing, 3)}",
        expected=expected,
        source=at_member(case, compiled.member),
        facts={
            "symbols": tuple(missing[:20]),
            "count": len(missing),
            "executorch_here": case.host.packages.get("executorch"),
            "executorch_needed": release_text(newest[0]) if newest is not None else None,
            "torch_shims": len(missing),
            "old_string_abi": False,
            "outcome": f"symbol lookup error: undefined symbol: {missing[0]}, and the process ends with status 127",
            "remedy": f"Run it with {expected}, or export it again for the release that runs it."
            if newest is not None
            else "Export it again for the runtime that runs it: the first call would end the process.",
            "command": f"aotidoctor compat {case.artifact.path} --host executorch-{release_text(last)}",
        },
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "platform_mismatch"))
