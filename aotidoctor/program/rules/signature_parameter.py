"""A parameter of the signature is not there, or is none.

What it does
    Follows every parameter of the signature to the state dict.

Why it matters
    The program has a weight without a value. PyTorch's verifier refuses it.

Example:
    linear.weight: observed parameter linear.weight is not in the state dict, expected its value

When it is wrong
    Never. An archive whose weights were left out on purpose has to be given them before it is verified.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S03",
    name="signature_parameter",
    title="a parameter of the signature is missing, or is not a parameter",
    severities={
        "not-tensor": Severity.ERROR,
        "no-target": Severity.ERROR,
        "absent": Severity.ERROR,
        "not-parameter": Severity.ERROR,
    },
    of_torch=True,
    names_target=True,
)
