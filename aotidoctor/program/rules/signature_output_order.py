"""The results are in another order than the signature says.

What it does
    Compares the names of what the graph returns, after the new values of inputs, with the user outputs of the
    signature.

Why it matters
    The caller would get one result for another, silently. PyTorch's verifier refuses the program.

Example:
    mul: observed the graph returns mul where the signature has add, expected add

When it is wrong
    Never.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S11",
    name="signature_output_order",
    title="the results are in a different order from the signature",
    severities={"output-order": Severity.ERROR},
    of_torch=True,
)
