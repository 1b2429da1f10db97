"""A token of the signature is something else.

What it does
    Looks at inputs of the kind TOKEN, which keep operators with side effects in order.

Why it matters
    The order of side effects would hang on a tensor. PyTorch's verifier refuses the program.

Example:
    token: observed a token that is a TensorArgument, expected a TokenArgument

When it is wrong
    Never.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S07",
    name="signature_token",
    title="a token of the signature is something else",
    severities={"not-token": Severity.ERROR},
    of_torch=True,
)
