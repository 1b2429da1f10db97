"""The NVIDIA driver is too old for the CUDA version that torch was built with.

What it does
    Compares the driver version with the oldest one that supports torch's major version of CUDA.

Why it matters
    CUDA does not initialise: "The NVIDIA driver on your system is too old", or, inside the loader, only
    "create_func_( ... ) API call failed".

Example:
    driver: observed 470.57.02, expected at least 525.60.13 for CUDA 12.6

When it is wrong
    A forward-compatibility package (cuda-compat) replaces the driver's library; it is detected where the dynamic loader
    would find it.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, device_of, unstated_reason
from aotidoctor.model.case import Case

FIND = Finder("AD-HOST-012", "driver_mismatch")
# Minor-version compatibility: one oldest driver per major version of CUDA (Linux).
OLDEST_DRIVER = {"10": "410.48", "11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}


def run(case: Case) -> Findings:
    """At most one finding."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    if (
        device_of(case) == "cuda"
        and (reason := unstated_reason(case, "torch", "torch.cuda", "cuda_driver")) is not None
    ):
        return FIND.unchecked(reason)
    torch, driver = case.host.torch, case.host.cuda_driver
    if device_of(case) != "cuda" or torch is None or torch.cuda is None:
        return None
    oldest = OLDEST_DRIVER.get(torch.cuda.partition(".")[0])
    if driver is None or oldest is None:
        return FIND.unchecked(
            "the driver version is unknown" if oldest else f"CUDA {torch.cuda} is unknown to this version"
        )
    if version_key(driver) >= version_key(oldest):
        return None
    return FIND.error(
        "driver-older",
        "driver",
        observed=driver,
        expected=f"at least {oldest} for CUDA {torch.cuda}",
        facts={"driver": driver, "oldest": oldest, "cuda": torch.cuda},
    )


def version_key(text: str) -> tuple[int, ...]:
    """``525.60.13`` as numbers."""
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "device_unavailable"), facts=("device-code",))
