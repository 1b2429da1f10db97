"""An operator has no C shim in the installed torch.

What it does
    Decomposes the program as Inductor would, and looks for operators that Inductor has no code for and that are not
    among the C shims of the installed torch.

Why it matters
    The package calls them through the proxy executor: slower, and unavailable where the package is run without
    libtorch. Where such an operator returns something that the proxy executor cannot return (kind no-way),
    compiling fails.

Example:
    linalg_eig (aten.linalg_eig.default): observed aten.linalg_eig.default has no C shim in this torch

When it is wrong
    Inductor may fuse or replace an operator before it comes to that. A package that loads without libtorch is
    another matter.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A02",
    name="missing_shim",
    title="an operator has no C shim in the installed torch",
    severities={"no-shim": Severity.INFO, "no-way": Severity.WARN},
)
