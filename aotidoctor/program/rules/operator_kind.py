"""A node calls something that is no operator.

What it does
    Asks the installed verifier of the program's dialect about the target of every call, one at a time: operators,
    higher-order operators, and a list of Python and torch functions are allowed.

Why it matters
    A plain Python function has no schema: it cannot be saved, decomposed or compiled.

Example:
    relu (torch.relu): observed torch.relu (builtin_function_or_method), expected an operator (torch.ops...)

When it is wrong
    A backend's own dialect may allow more; register it with --setup, so that its verifier is the one that is asked.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G03",
    name="operator_kind",
    title="a node calls something that is not an operator",
    severities={"operator-kind": Severity.ERROR},
    of_torch=True,
)
