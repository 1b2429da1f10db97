"""The program was saved in another version of the format.

What it does
    Compares the major version of the archive's schema with that of the installed torch, then rebuilds the program
    all the same.

Why it matters
    torch.export.load refuses it.

Example:
    observed Serialized schema version 7.1 does not match our current schema version 8.16

When it is wrong
    Verify with the torch that made the program, or export it again.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-L04",
    name="schema_version",
    title="the program was saved in a different version of the format",
    severities={"schema-version": Severity.ERROR},
)
