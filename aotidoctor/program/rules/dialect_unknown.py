"""The program is of a dialect that nobody has registered here.

What it does
    Looks up the verifiers that the archive names.

Why it matters
    torch.export.load raises KeyError. What the dialect allows is not known, so rules of operators are judged by the
    dialects that are known.

Example:
    EDGE: observed dialect 'EDGE', for which no verifier is registered here, expected ATEN, TRAINING, or one that
    --setup registers

When it is wrong
    Import the package that defines the dialect with --setup.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G10",
    name="dialect_unknown",
    title="the program uses a dialect that is not registered here",
    severities={"dialect-unknown": Severity.ERROR},
    of_torch=True,
    names_target=True,
)
