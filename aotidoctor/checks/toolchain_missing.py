"""The package has to be compiled when it is loaded, and this host has no C++ compiler.

What it does
    For a package without a shared object: looks for the compiler that the loader would start.

Why it matters
    The load fails with "Failed to compile" or "Failed to link files" and the reason is printed only to stderr.

Example:
    g++: observed not on the PATH, expected a C++ compiler

When it is wrong
    The package may name its own compiler by a full path.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.package.facts import NO_MODEL, at_member, unstated
from aotidoctor.model.case import Case

FIND = Finder("AD-HOST-007", "toolchain_missing")
_COMPILERS = ("g++", "clang++", "c++", "CXX")


def run(case: Case) -> Findings:
    """At most one finding."""
    model = case.model
    if model is None:
        return FIND.unchecked(NO_MODEL)
    if not model.cpp_only or model.shared_objects or any(case.host.tools.get(name) for name in _COMPILERS):
        return []
    if (reason := unstated(case, "tools")) is not None:
        return FIND.unchecked(reason)
    return [
        FIND.error(
            "compiler",
            "g++",
            observed="not on the PATH",
            expected="a C++ compiler, as the package has no .so and is compiled when loaded",
            source=at_member(case, model.wrapper_member),
        )
    ]


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
