"""The call of the package is not the call of the program.

What it does
    Compares the leaves of the two call specs by their paths and order, and which of them are tensors.

Why it matters
    The compiler copies the call spec of the program. Another one means another program.

Example:
    args[1]['b']: observed args[1]['b'] at position 1 (2 leaves), expected args[1]['a'] (2 leaves), as in the
    program

When it is wrong
    Containers of another type around the same leaves are only a hint: versions of torch spell them differently.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-P01",
    name="origin_call",
    title="the call of the package is not the call of the program",
    severities={
        "count": Severity.ERROR,
        "order": Severity.ERROR,
        "names": Severity.ERROR,
        "kind": Severity.ERROR,
        "kind-hint": Severity.INFO,
        "containers-hint": Severity.INFO,
    },
    names_target=True,
)
