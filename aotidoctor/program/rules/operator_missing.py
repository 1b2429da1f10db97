"""An operator of the program is not registered here.

What it does
    Looks up every operator that the archive names, and lists all that are missing. Each is then declared as the
    archive shows it, so that the rest can be judged.

Why it matters
    torch.export.load fails at the first: We failed to resolve ... to an operator.

Example:
    zoo::scale: observed operator zoo::scale is not registered in this process

When it is wrong
    Register it: --setup ops.py, or --custom-op-library libops.so.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-L02",
    name="operator_missing",
    title="an operator of the program is not registered here",
    severities={"operator-missing": Severity.ERROR},
    names_target=True,
)
