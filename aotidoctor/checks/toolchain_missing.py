"""The package has to be compiled when it is loaded, and this host lacks the C++ compiler or PyTorch's headers for it.

What it does
    For a package without a shared object: looks for the compiler that the loader would start, and for the folders of
    PyTorch's headers and libraries that the package's compile flags name. They are those of the host that compiled it.

Why it matters
    The load fails with "Failed to compile" or "Failed to link files" and the reason is printed only to stderr.

Example:
    g++: observed not on the PATH, expected a C++ compiler
    /opt/build/venv/torch/include: observed no such folder, expected PyTorch's headers

When it is wrong
    The package may name its own compiler by a full path. CPATH and LIBRARY_PATH, which may lead the compiler to other
    folders, are looked at as they are here.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, at_member, unstated_reason
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.case import Case

FIND = Finder("AD-HOST-007", "toolchain_missing")
_COMPILERS = ("g++", "clang++", "c++", "CXX")
_INSTALL = {
    "Windows": {"command": "winget install Microsoft.VisualStudio.2022.BuildTools   # with the workload for C++"},
    "Darwin": {"command": "xcode-select --install"},
}
# Any other folder may be missing: the compiler skips it, and headers in it are rarely included.
_OF_TORCH = ("/torch/include", "/torch/lib")


def run(case: Case) -> Findings:
    """At most one finding."""
    model = case.model
    if model is None:
        return FIND.unchecked(NO_MODEL)
    if not model.cpp_only or model.shared_objects:
        return None
    if any(case.host.tools.get(name) for name in _COMPILERS):
        return _headers(case, model)
    if (reason := unstated_reason(case, "tools")) is not None:
        return FIND.unchecked(reason)
    return FIND.error(
        "compiler",
        "g++",
        observed="not on the PATH",
        expected="a C++ compiler, as the package has no .so and is compiled when loaded",
        source=at_member(case, model.wrapper_member),
        facts=_INSTALL.get(case.host.system, {}),
    )


def _headers(case: Case, model: ModelEntry) -> Findings:
    """The finding for PyTorch's folders on the host that compiled the package, if they do not exist here."""
    missing = case.host.missing_folders
    if missing is None:
        return FIND.unchecked("the folders of headers are not known for this host") if model.build_folders else []
    lost = tuple(folder for folder in model.build_folders if folder in missing and folder.endswith(_OF_TORCH))
    if not lost:
        return None
    torch, command = case.host.torch, None
    if torch is not None and torch.path:
        # These variables lead the compiler to the PyTorch of this host.
        headers = f"{torch.path}/include"
        command = f"export CPATH={headers}:{headers}/torch/csrc/api/include LIBRARY_PATH={torch.path}/lib"
    return FIND.error(
        "headers",
        lost[0],
        observed="no such folder",
        expected="PyTorch's headers and libraries, as on the host that compiled the package",
        source=at_member(case, model.wrapper_member),
        facts={
            "folders": lost,
            "remedy": "Ship a package with a .so, or lead the compiler to the PyTorch that is installed here.",
            "command": command,
        },
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
