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

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.device_unavailable import unavailable
from aotidoctor.checks.matching.package_facts import (
    NO_MODEL,
    NOT_STATED,
    at_member,
    device_of,
    has_library,
    main_object,
)
from aotidoctor.model.artifact import SharedObject
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, list_names

FIND = Finder("AD-HOST-005", "missing_library")
_OF_A_DEVICE = ("libcuda.so", "libcudart.so", "libtorch_cuda", "libc10_cuda", "libnv", "libcu", "libtorch_xpu",
                "libc10_xpu", "libsycl", "libze_loader", "libtorch_hip", "libc10_hip", "libamdhip64")  # fmt: skip


def run(case: Case) -> Findings:
    """One finding per library that is not found."""
    compiled = main_object(case)
    if compiled is None:
        return FIND.unchecked(NO_MODEL if case.model is None else "the model has no shared object")
    if case.host.profile is not None:
        return _on_profile(case, compiled)
    if not case.host.libraries:
        return FIND.unchecked(case.host.symbols_problem or "libraries were not resolved")
    missing = [name for name in compiled.needed if case.host.libraries.get(name, "") is None]
    given = {path.rpartition("/")[2] for path in case.options.custom_op_libraries}
    return [_missing(case, compiled.member, name, given) for name in missing if not _is_explained(case, name)]


def _on_profile(case: Case, compiled: SharedObject) -> Findings:
    """What the profile of another machine tells of each library."""
    given = {path.rpartition("/")[2] for path in case.options.custom_op_libraries}
    known = {name: has_library(case.host, name) for name in compiled.needed}
    missing = [name for name, found in known.items() if found is False and not _is_explained(case, name)]
    unknown = [name for name, found in known.items() if found is None and not _is_explained(case, name)]
    if unknown and not missing:
        return FIND.unchecked(f"the profile {case.host.profile}{NOT_STATED}{list_names(unknown)}")
    return [_missing(case, compiled.member, name, given) for name in missing]


def _is_explained(case: Case, name: str) -> bool:
    """Whether the library belongs to a device whose absence is a finding already."""
    return unavailable(case) is not None and device_of(case) != "cpu" and name.startswith(_OF_A_DEVICE)


def _missing(case: Case, member: str, name: str, given: set[str]) -> Evidence:
    # The loader takes a library that is loaded already by its soname, which mostly is its file name.
    state = FIND.info if name in given else FIND.error
    return state(
        "needed",
        name,
        observed="not found",
        expected="a library that the dynamic loader finds",
        source=at_member(case, member),
        facts={"library": name, "given": name in given},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "platform_mismatch"))
