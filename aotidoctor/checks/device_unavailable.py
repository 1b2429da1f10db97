"""The package was compiled for a device type that this torch or this host does not have.

What it does
    Compares the device in the metadata with what torch was built for, and looks for driver and devices in /proc.

Why it matters
    A CUDA package gives "Torch not compiled with CUDA enabled" or "libcuda.so.1: cannot open shared object file",
    depending on the build of torch. Everything static (contract, inputs, symbols) is still checked without the device.

Example:
    AOTI_DEVICE_KEY: observed cuda, expected a device of this host (torch 2.13.0+cpu is built for the CPU only)

When it is wrong
    In a container, devices may be visible to CUDA without an entry in /proc. An injected driver library is not seen.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import (
    DEVICE_KEY,
    GPU_DEVICES,
    NO_MODEL,
    device_of,
    device_source,
    unstated_reason,
)
from aotidoctor.model.case import Case

FIND = Finder("AD-HOST-003", "device_unavailable")


def run(case: Case) -> Findings:
    """At most one finding."""
    if case.model is None and case.artifact.precompiled is None:
        return FIND.unchecked(NO_MODEL)
    reason = unavailable_reason(case)
    if reason is None:
        # The facts that a profile must state before the device is known to be there.
        facts = ("gpus",) if case.artifact.executorch is not None else ("torch", "torch.cuda", "gpus")
        unknown = unstated_reason(case, *facts) if device_of(case) in GPU_DEVICES else None
        return FIND.unchecked(unknown) if unknown is not None else []
    kind, words = reason
    device = device_of(case)
    # An ExecuTorch program is checked where it was exported, and runs elsewhere.
    elsewhere = case.artifact.executorch is not None and case.host.profile is None
    return (FIND.warn if elsewhere else FIND.error)(
        kind,
        DEVICE_KEY if case.artifact.executorch is None else "device",
        observed=f"{device}",
        expected="a device of this host",
        message=f"the package is compiled for {device}, and {words}; contract, inputs and symbols are checked, "
        "but the package cannot be loaded or run here",
        source=device_source(case),
        facts={"device": device, "torch": case.host.torch.version if case.host.torch else None, "why": words},
    )


def unavailable_reason(case: Case) -> tuple[str, str] | None:
    """``(kind, reason)`` when the package's device cannot be used here, else None."""
    device = device_of(case)
    if device not in GPU_DEVICES:
        return None
    torch = case.host.torch
    # ExecuTorch's runtime of a device does not use torch.
    if "torch.cuda" in case.host.unstated or case.artifact.executorch is not None:
        torch = None
    if torch is not None:
        built = {"cuda": bool(torch.cuda or torch.hip), "xpu": torch.xpu, "mps": case.host.system == "Darwin"}
        if not built[device]:
            return "torch-build", f"torch {torch.version} is not built for it"
    if device != "cuda" or (torch is not None and torch.hip):
        return None
    if case.host.gpus or "gpus" in case.host.unstated:
        return None
    if case.host.cuda_driver is None:
        return "no-driver", "this host has no NVIDIA driver"
    # Some container runtimes and WSL give the device without /proc/driver/nvidia/gpus; a container proves nothing.
    return None if case.host.in_container else ("no-device", "the NVIDIA driver lists no GPU")


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "artifact_bad_metadata"))
