"""The package contains sources but no shared object: loading it runs a compiler.

What it does
    Looks for a model without a .so that carries the flags to compile and link one.

Why it matters
    Such a load takes tens of seconds, needs a C++ compiler and headers at the paths of the build host, and runs a
    command that comes from inside the package. Do not load one that you did not build.

Example:
    data/aotinductor/model: observed sources and no .so, expected a compiled package

When it is wrong
    It may be intended: package_cpp_only=True ships sources on purpose. Therefore this is a warning.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, at_member
from aotidoctor.model.case import Case

FIND = Finder("AD-ART-010", "artifact_cpp_only")
CREATE = "AOTInductorModelContainerCreate"


def run(case: Case) -> Findings:
    """At most one finding."""
    model = case.model
    if model is None:
        return FIND.unchecked(NO_MODEL)
    if not model.cpp_only or model.shared_objects:
        return None
    # Whether its sources, the header of the class among them, lack the functions that a loader calls.
    sources = (model.wrapper_cpp or "", *model.kernel_sources.values())
    header = any(member.name.endswith(".h") for member in model.members)
    if header and bool(model.wrapper_cpp) and not any(CREATE in source for source in sources):
        return FIND.error(
            "standalone",
            f"data/aotinductor/{model.name}",
            observed=f"sources of a standalone model: none of them defines {CREATE}",
            expected="sources that a loader can use",
            source=at_member(case, model.wrapper_member),
            facts={
                "model": model.name,
                "what": "they belong to a standalone model, which no loader can use",
                "remedy": "Compile without aot_inductor_mode.compile_standalone, or build it into your C++ program.",
                "command": "torch._inductor.aoti_compile_and_package(ep, package_path='model.pt2')",
            },
        )
    return FIND.warn(
        "cpp-only",
        f"data/aotinductor/{model.name}",
        observed="sources but no .so: loading runs a compiler with a command from the package",
        expected="a compiled package",
        source=at_member(case, model.wrapper_member),
        facts={"model": model.name},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
