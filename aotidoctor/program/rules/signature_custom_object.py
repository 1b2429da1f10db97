"""A custom object of the signature is not there, or is none.

What it does
    Follows every custom object (TorchBind) of the signature to the program's constants.

Why it matters
    The program calls methods of an object that it does not have. PyTorch's verifier refuses it.

Example:
    queue: observed custom object queue is not among the program's constants, expected its value

When it is wrong
    Never.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S06",
    name="signature_custom_object",
    title="a custom object of the signature is missing, or is not a custom object",
    severities={"not-object": Severity.ERROR, "no-target": Severity.ERROR, "absent": Severity.ERROR},
    of_torch=True,
    names_target=True,
)
