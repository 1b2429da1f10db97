"""A constant tensor of the signature is not there.

What it does
    Follows every constant tensor of the signature to the program's constants.

Why it matters
    The program has a constant without a value. PyTorch's verifier refuses it.

Example:
    lifted_tensor_0: observed constant tensor lifted_tensor_0 is not among the program's
    constants

When it is wrong
    Never.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S05",
    name="signature_constant",
    title="a constant tensor of the signature is missing",
    severities={"not-tensor": Severity.ERROR, "no-target": Severity.ERROR, "absent": Severity.ERROR},
    of_torch=True,
    names_target=True,
)
