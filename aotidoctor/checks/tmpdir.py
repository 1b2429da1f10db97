"""The temporary folder cannot take the unpacked package.

What it does
    Checks TMPDIR (/tmp if unset, and for torch before 2.13): whether it exists, is writable, allows execution and has
    enough space.

Why it matters
    Every load unpacks the package there and maps the .so from there. The messages are "Error generating temporary
    directory", "write callback failed" and "failed to map segment from shared object". Loads that failed or crashed
    leave their folder behind, so the disk fills up over time.

Example:
    /scratch: observed does not exist, expected a writable folder with 1541864 bytes free

When it is wrong
    Your program sets a different TMPDIR from this shell. Quotas are not detected.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import unstated_reason
from aotidoctor.model.case import Case, TmpdirState
from aotidoctor.model.evidence import FactValue

FIND = Finder("AD-HOST-008", "tmpdir")
_WINDOWS = "Set TEMP to a folder that exists, is writable and has room for the unpacked package."


def run(case: Case) -> Findings:
    """At most one finding."""
    state = case.host.tmpdir
    if state is None:
        return FIND.unchecked(unstated_reason(case, "tmpdir") or "the temporary folder was not inspected")
    if state.problem is None:
        return None
    needed, path = case.artifact.unpacked_size, state.path
    facts: dict[str, FactValue] = {"path": path, "free_bytes": state.free_bytes, "needed_bytes": needed}
    if state.fixed and case.host.torch is not None:
        why = f"torch {case.host.torch.version} unpacks to {path} and ignores TMPDIR (2.13 and later use it)"
        facts |= {"advice": f"Make {path} usable: {why}.", "instead": f"df {path}; findmnt -T {path}"}
    if case.host.system == "Windows":
        facts |= {"advice": _WINDOWS, "instead": r"set TEMP=D:\temp"}
    return FIND.error(
        kind_of(state),
        path,
        observed=state.problem,
        expected=f"a writable folder with {needed} bytes free that allows execution",
        facts=facts,
    )


def kind_of(state: TmpdirState) -> str:
    """The kind of finding for a state with a problem."""
    if not state.exists:
        return "missing"
    if not state.writable:
        return "readonly"
    return "noexec" if state.noexec else "full"


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
