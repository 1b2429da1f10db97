"""An operator has no C shim in the installed torch.

What it does
    Decomposes the program as Inductor would, and looks for operators that Inductor has no code for: whether they are on
    the installed torch's list of C shims, and whether the header for the program's device declares them.

Why it matters
    Without a shim the package calls the operator through the proxy executor: slower, and unavailable where it is run
    without libtorch. One that is listed and not declared for the device (kind undeclared) does not compile:
    'aoti_torch_cpu_...' was not declared in this scope.

Example:
    linalg_eig (aten.linalg_eig.default): observed aten.linalg_eig.default has no C shim in this torch

When it is wrong
    Inductor may fuse or replace an operator before it comes to that.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A02",
    name="missing_shim",
    title="an operator has no C shim in the installed torch",
    severities={"no-shim": Severity.WARN, "undeclared": Severity.ERROR},
)
