"""An ExecuTorch program needs a backend that no release of ExecuTorch has.

What it does
    Compares the ids of the delegates of a ``.pte`` with those of ExecuTorch's own backends.

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

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FileSource, list_names
from aotidoctor.model.executorch import AOTI_BACKENDS

FIND = Finder("AD-PTE-002", "executorch_backend")
_KNOWN = AOTI_BACKENDS | {
    "XnnpackBackend", "CoreMLBackend", "MPSBackend", "QnnBackend", "VulkanBackend", "EthosUBackend", "ArmBackend",
    "VgfBackend", "NeuropilotBackend", "OpenvinoBackend", "EnnBackend", "NeutronBackend", "MLXBackend",
    "BackendWithCompilerDemo",
}  # fmt: skip


def run(case: Case) -> Findings:
    """One finding per unknown backend."""
    found = []
    for name in _backends(case):
        if name in _KNOWN:
            continue
        near = difflib.get_close_matches(name[:100], sorted(_KNOWN), n=1, cutoff=0.8)
        hint = f" ({near[0]} is one)" if near else ""
        expected = near[0] if near else "a backend that the runtime registers"
        found.append(
            FIND.warn(
                "unknown",
                name[:100],
                observed="a backend that is none of ExecuTorch's",
                expected=expected,
                message=f"{name[:100]} is none of ExecuTorch's backends{hint}: unless the host registers "
                "it, the runtime refuses the method: Backend is not registered, 0x20",
                source=FileSource(file=case.artifact.path),
                facts={"backend": name[:100], "near": near[0] if near else None},
            )
        )
    return found


def _backends(case: Case) -> tuple[str, ...]:
    program = case.artifact.executorch
    return tuple(dict.fromkeys(delegate.backend for delegate in program.delegates)) if program is not None else ()


def _not_asked(case: Case) -> str | None:
    """The backends of the runtime, which is not started."""
    names = _backends(case)
    if not names:
        return None
    ask = "executorch.runtime.Runtime.get().backend_registry.registered_backend_names"
    return f"whether the runtime has {list_names(names)} is not known; ask it: {ask}"


CHECK = FIND.check(
    run, cause="backend-unsupported", needs=("artifact_missing", "artifact_wrong_kind"), partly=_not_asked
)
