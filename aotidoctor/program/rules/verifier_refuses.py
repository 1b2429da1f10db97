"""PyTorch's verifier refuses the program, for a reason that this version does not know.

What it does
    Runs the verifier of the installed torch when no other rule found anything, and passes its sentence on.

Why it matters
    A newer torch may have rules that are not written down here yet.

Example:
    observed SpecViolationError: ..., expected what dialect ATEN allows

When it is wrong
    The verifier stops at the first violation; there may be more.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G12",
    name="verifier_refuses",
    title="PyTorch's verifier refuses the program, for a reason that this version does not know",
    severities={"verifier-refuses": Severity.ERROR},
    of_torch=True,
)
