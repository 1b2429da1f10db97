"""Weights and constants are beyond 2 GB.

What it does
    Adds up parameters, buffers and constants.

Why it matters
    The weights cannot be a section of the library: 32-bit offsets end there. Inductor appends them and maps them at
    load, or keeps them outside; on some platforms it fails.

Example:
    w: observed 2,400,000,000 bytes of weights and constants, the largest w, expected at most 2,000,000,000 bytes

When it is wrong
    Folded constants and weights that are not used any more do not get into the package.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A09",
    name="large_constants",
    title="weights and constants are beyond 2 GB",
    severities={"large-constants": Severity.WARN},
    names_target=True,
)
