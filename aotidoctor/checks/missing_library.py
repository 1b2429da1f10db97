"""A library that the package was linked to is not found on this host.

What it does
    Resolves each NEEDED name of the shared object as the dynamic loader would in a process that has torch loaded.

Why it matters
    Loading fails with "Error in dlopen: ...: cannot open shared object file". A package built against a CUDA build of
    torch needs libraries that a CPU build lacks.

Example:
    libtorch_gpu.so: observed not found, expected a library that the dynamic loader finds

When it is wrong
    Your program sets LD_LIBRARY_PATH, or loads the library itself before the package: run aotidoctor in the same
    environment, or name the library with --custom-op-library.
"""

from __future__ import annotations

import re

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.device_unavailable import unavailable_reason
from aotidoctor.checks.matching.package_facts import (
    NO_MODEL,
    NOT_STATED,
    at_member,
    device_of,
    has_library,
    main_object,
)
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import list_names, plural

FIND = Finder("AD-HOST-005", "missing_library")
_OF_A_DEVICE = ("libcuda.so", "libcudart.so", "libtorch_cuda", "libc10_cuda", "libnv", "libcu", "libtorch_xpu",
                "libc10_xpu", "libsycl", "libze_loader", "libtorch_hip", "libc10_hip", "libamdhip64")  # fmt: skip


def run(case: Case) -> Observations:
    """One finding per library that is not found."""
    compiled, host = main_object(case), case.host
    if compiled is None:
        yield FIND.unchecked(NO_MODEL if case.model is None else "the model has no shared object")
        return
    missing: list[str] = []
    unknown: list[str] = []
    # The absence of a device is a finding already, which explains its libraries.
    explained = _OF_A_DEVICE if unavailable_reason(case) is not None and device_of(case) != "cpu" else ()
    resolved = host.profile is not None or host.libraries
    for name in compiled.needed if resolved else ():
        there = has_library(host, name) if host.profile is not None else host.libraries.get(name, "") is not None
        if not there and not name.startswith(explained):
            (unknown if there is None else missing).append(name)
    if unknown and not missing:
        yield FIND.unchecked(f"the profile {host.profile}{NOT_STATED}{list_names(unknown)}")
        return
    # Functions of CUDA's runtime in code that names no library for them.
    names = [ref.name for ref in compiled.undefined if ref.name.startswith("cuda") and ref.library is None]
    if names and not any(name.startswith(("libcudart", "libtorch")) for name in compiled.needed):
        yield FIND.info(
            "unlinked",
            "libcudart",
            observed=f"{plural(len(names), 'function')} of CUDA's runtime without a library: {list_names(names, 3)}",
            expected="libcudart in the process that loads the code",
            source=at_member(case, compiled.member),
            facts={"symbols": tuple(names[:20]), "count": len(names)},
        )
    if not resolved:
        yield FIND.unchecked(host.symbols_problem or "libraries were not resolved")
    given = {path.rpartition("/")[2] for path in case.options.custom_op_libraries}
    for name in missing:
        # The loader takes a library that is loaded already by its soname, which is mostly its file name.
        yield (FIND.info if name in given else FIND.error)(
            "needed",
            name,
            observed="not found",
            expected="a library that the dynamic loader finds",
            source=at_member(case, compiled.member),
            facts={"library": name, "given": name in given, **_advice(name)},
        )


def _advice(name: str) -> dict[str, str]:
    """What helps on Windows and macOS, whose loaders do not ask LD_LIBRARY_PATH; nothing for a library of Linux."""
    base = name.rpartition("/")[2].lower()
    if re.fullmatch(r"(?:vcruntime140|msvcp140|ucrtbase)d\.dll", base):
        only = ", which only Visual Studio brings: compile the package with the release runtime (/MD)."
        return {"install": "Do without", "place": only, "step": "dumpbin /dependents model.dll"}
    if base.endswith(".dll"):
        mingw = ", or link it into the package (-static)" if base.startswith("lib") else ""
        place = f" and name its folder to the process before the load{mingw}."
        return {
            "place": place,
            "step": r"""python -c "import os; os.add_dll_directory(r'C:\folder\of\it')" """.rstrip(),
        }
    if base.endswith(".dylib"):
        return {"place": ", where the package looks for it.", "step": "otool -L model.wrapper.so"}
    return {}


def _not_resolved(case: Case) -> str | None:
    """The libraries of the process that runs an ExecuTorch program, which is not this one."""
    compiled = main_object(case)
    if case.artifact.executorch is None or compiled is None or case.host.profile is not None or not compiled.needed:
        return None
    return f"whether the process that runs ExecuTorch finds {list_names(compiled.needed, 8)} is not known"


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "platform_mismatch"), partly=_not_resolved)
