"""The package was requested to load on a different device type from the one that it was compiled for.

What it does
    Compares --device with the device in the package's metadata.

Why it matters
    Compiled code cannot change its device. Some loaders accept the wrong one and crash at the first run.

Example:
    --device: observed cuda, expected cpu

When it is wrong
    Never, as long as the metadata belong to the shared object.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, device_of, device_source
from aotidoctor.model.case import Case

FIND = Finder("AD-LOAD-003", "load_device")


def run(case: Case) -> Findings:
    """At most one finding."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    compiled = device_of(case)
    requested = (case.options.device or "").partition(":")[0]
    if not requested or compiled is None or requested == compiled:
        return None
    return FIND.error(
        "device",
        "--device",
        observed=requested,
        expected=compiled,
        source=device_source(case),
        facts={"asked": requested, "compiled": compiled},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "artifact_bad_metadata"))
