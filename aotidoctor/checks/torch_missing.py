"""torch is not installed on this host, so nothing can be run.

What it does
    Looks for torch on the path of this interpreter, without importing it.

Why it matters
    The file and the inputs are still checked. Symbols, loading and running need torch.

Example:
    torch: observed torch is not installed for this Python interpreter, expected an installed torch

When it is wrong
    torch is installed for a different interpreter: start aotidoctor with that one.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import unstated_reason
from aotidoctor.model.case import Case

FIND = Finder("AD-HOST-013", "torch_missing")


def run(case: Case) -> Findings:
    """At most one finding, a note."""
    if (reason := unstated_reason(case, "torch")) is not None:
        return FIND.unchecked(reason)
    if case.host.torch is not None:
        return None
    return FIND.info(
        "not-installed",
        "torch",
        observed=case.host.torch_problem or "no torch",
        expected="an installed torch, to load and run the package",
    )


CHECK = FIND.check(run, cause="toolchain-missing")
