"""``aoti_load_package`` of this torch fails in a process that has compiled nothing.

What it does
    Looks for torch 2.10.0 on the host and for a package with the layout of 2.8 and later.

Why it matters
    torch 2.10.0 compares the package with this CPU by ``torch._inductor.codecache``, which it does not import: the call
    ends in "AttributeError: module 'torch._inductor' has no attribute 'codecache'". If the process compiled something
    before, the module is imported and the same call works. C++ and ``run`` also work: they use the loader below that
    call.

Example:
    torch 2.10.0: observed aoti_load_package without an import of its own, expected torch._inductor.codecache imported

When it is wrong
    The program imports ``torch._inductor.codecache``, or compiles something, before it loads the package.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings, Observations
from aotidoctor.checks.matching.package_facts import metadata_value
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.other_artifacts import Precompiled

FIND = Finder("AD-HOST-016", "load_call")
# There is no other release of 2.10.
_AFFECTED = ("2.10.0", "2.10")
_MARK = "archive_version"
_STEP = "import torch._inductor.codecache before aoti_load_package"


def run(case: Case) -> Findings:
    """At most one finding, a note."""
    if case.artifact.precompiled is not None:
        return _of_process(case.artifact.precompiled)
    version = case.host.torch.version.partition("+")[0] if case.host.torch is not None else ""
    if version not in _AFFECTED or case.artifact.kind is not ArtifactKind.AOTI_PACKAGE:
        return None
    # The loader in Python hands an old package to the one in C++, and a package without a device fails before that.
    marked = any(member.name.rpartition("/")[2] == _MARK for member in case.artifact.members)
    if not marked or metadata_value(case, "AOTI_DEVICE_KEY")[0] is None:
        return None
    return FIND.info(
        "import",
        f"torch {version}",
        observed="aoti_load_package fails unless torch._inductor.codecache has been imported",
        expected=_STEP,
        facts={"provided": _STEP},
    )


def _of_process(found: Precompiled) -> Observations:
    """What a process must bring to load and call a function of aot_compile: objects, and whether gradients are on."""
    if not found.form.startswith("aot-compile"):
        return
    function = next(iter(found.functions), None)
    for name in function.external[:20] if function is not None else ():
        step = f"torch.compiler.load_compiled_function(file, external_data={{{name!r}: ...}})"
        yield FIND.info(
            "external",
            name,
            observed="an object that the file names and does not hold",
            expected=step,
            message=f"the loader must be given {name}, which the file does not hold: {step}",
            facts={"provided": step},
        )
    if function is not None and function.grad_mode is not None:
        mode = "on" if function.grad_mode else "off"
        step = "call it outside of torch.no_grad()" if function.grad_mode else "call it under torch.no_grad()"
        yield FIND.info(
            "grad-mode",
            "gradients",
            observed=f"compiled with gradients {mode}",
            expected=step,
            message=f"compiled with gradients {mode}, and any other call is refused: {step}",
            facts={"provided": step},
        )


CHECK = FIND.check(
    run, cause="load-api", needs=("artifact_missing", "artifact_wrong_kind", "artifact_layout", "torch_missing")
)
