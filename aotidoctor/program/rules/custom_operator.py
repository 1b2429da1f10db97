"""The program calls a custom operator.

What it does
    Looks at operators outside of torch: whether they have a fake kernel (for shapes and dtypes, needed to compile)
    and a kernel for the device of their arguments.

Why it matters
    Without a fake kernel compiling fails. The package calls the operator by name: whoever loads it must have
    registered it, with a kernel for that device.

Example:
    zoo::scale: observed zoo::scale has no fake kernel, expected a fake kernel

When it is wrong
    What is registered is seen in the process that verifies, with --setup and --custom-op-library; elsewhere it may
    be otherwise.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A03",
    name="custom_operator",
    title="the program calls a custom operator",
    severities={"custom-op": Severity.INFO, "no-fake": Severity.ERROR, "no-kernel": Severity.WARN},
    names_target=True,
)
