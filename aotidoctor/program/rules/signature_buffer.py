"""A buffer of the signature is not there, or is where it must not be.

What it does
    Follows every buffer of the signature: a persistent one is in the state dict (or among the constants), one that
    is not persistent is not in the state dict.

Why it matters
    The program has a buffer without a value, or two of them. PyTorch's verifier refuses it.

Example:
    mean: observed the state dict holds mean, which is not persistent, expected no entry: it is among the
    constants

When it is wrong
    Versions of torch before 2.11 do not look for persistent buffers among the constants; the installed one decides.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S04",
    name="signature_buffer",
    title="a buffer of the signature is missing, or is where it must not be",
    severities={
        "not-tensor": Severity.ERROR,
        "no-target": Severity.ERROR,
        "no-persistence": Severity.ERROR,
        "absent": Severity.ERROR,
        "unwanted": Severity.ERROR,
    },
    of_torch=True,
    names_target=True,
)
