"""An ExecuTorch program needs a backend that the runtime of the host, or any release of ExecuTorch, does not have.

What it does
    Compares the ids of the delegates of a ``.pte`` with the backends of the runtime, where a profile of the host states
    them, and with those of ExecuTorch's own.

Why it matters
    The runtime refuses the method: "Backend CudoBackend is not registered", 0x20. Which backends a runtime has depends
    on how it was built: the CUDA backend is in no wheel for Linux on PyPI.

Example:
    CudoBackend: observed a backend that is none of ExecuTorch's, expected CudaBackend

When it is wrong
    A backend of your own is none of ExecuTorch's; it is only a warning.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import NOT_STATED
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FileSource, list_names
from aotidoctor.model.other_artifacts import AOTI_BACKENDS

FIND = Finder("AD-PTE-002", "executorch_backend")
_ASK = "from executorch.runtime import Runtime; print(Runtime.get().backend_registry.registered_backend_names)"
_KNOWN = AOTI_BACKENDS | {
    "XnnpackBackend", "CoreMLBackend", "MPSBackend", "QnnBackend", "VulkanBackend", "EthosUBackend", "ArmBackend",
    "VgfBackend", "NeuropilotBackend", "OpenvinoBackend", "EnnBackend", "NeutronBackend", "MLXBackend",
    "BackendWithCompilerDemo",
}  # fmt: skip


def run(case: Case) -> Observations:
    """One finding per backend that the host's runtime, or any, does not have."""
    program, profile = case.artifact.executorch, case.host.profile
    names = list(dict.fromkeys(delegate.backend for delegate in program.delegates)) if program is not None else []
    if not names:
        return
    if profile is not None and case.host.executorch_backends:
        yield from _not_there(case, names)
        return
    if profile is not None and "executorch" not in case.host.packages:
        yield FIND.unchecked(f"the profile {profile}{NOT_STATED}executorch")
        return
    for name in names:
        if name in _KNOWN:
            continue
        near = difflib.get_close_matches(name[:100], sorted(_KNOWN), n=1, cutoff=0.8)
        hint = f" ({near[0]} is one)" if near else ""
        expected = near[0] if near else "a backend that the runtime registers"
        yield FIND.warn(
            "unknown",
            name[:100],
            observed="a backend that is none of ExecuTorch's",
            expected=expected,
            message=f"{name[:100]} is none of ExecuTorch's backends{hint}: unless the host registers "
            "it, the runtime refuses the method: Backend is not registered, 0x20",
            source=FileSource(file=case.artifact.path),
            facts={"backend": name[:100], "near": near[0] if near else None},
        )
    yield FIND.unchecked(
        f"the profile {profile}{NOT_STATED}executorch_backends"
        if profile is not None
        else f"whether the runtime has {list_names(names)} is not known; ask it: python -c '{_ASK}'"
    )


def _not_there(case: Case, names: Sequence[str]) -> Observations:
    stated, host = case.host.executorch_backends, case.host.profile
    there = list_names(sorted(stated))
    for name in (name[:100] for name in names if name not in stated):
        yield FIND.error(
            "not-registered",
            name,
            observed=f"{name}, which the runtime of {host} does not register",
            expected=f"one of {there}",
            message=f"the program needs {name}, and the runtime of {host} has {there}: it refuses the method with "
            "Backend is not registered, 0x20",
            source=FileSource(file=case.artifact.path),
            facts={
                "backend": name,
                "why": f"is not in the runtime of {host}",
                "outcome": f"Backend {name} is not registered",
                "step": f"Run it with an ExecuTorch that was built with {name}, or export it for a backend that is "
                "there.",
                "remedy": f'python -c "{_ASK}"',
            },
        )


CHECK = FIND.check(run, cause="backend-unsupported", needs=("artifact_missing", "artifact_wrong_kind"))
