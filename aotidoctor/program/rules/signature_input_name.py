"""An input of the signature is not the placeholder at its place.

What it does
    Compares the names of input specs with the placeholders, in order.

Why it matters
    Weights and inputs go to placeholders by position: two that are exchanged give wrong numbers, or an error far
    away. PyTorch's verifier refuses the program.

Example:
    p_weight: observed the signature has p_bias where the graph has p_weight, expected p_weight

When it is wrong
    Never. A pass that renames a placeholder has to rename it in the signature as well.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S02",
    name="signature_input_name",
    title="an input of the signature is not the placeholder at its place",
    severities={"input-name": Severity.ERROR},
    of_torch=True,
)
