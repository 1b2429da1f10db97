"""The file holds no exported program.

What it does
    Tells archives of torch.export by their members, without torch.

Why it matters
    There is nothing to verify. A compiled package has the same .pt2 suffix, and no graph any more.

Example:
    model.pt2: observed an AOTInductor package, expected an archive of torch.export.save

When it is wrong
    Never.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-L05",
    name="no_program",
    title="the file holds no exported program",
    severities={"wrong-kind": Severity.ERROR},
    names_target=True,
)
