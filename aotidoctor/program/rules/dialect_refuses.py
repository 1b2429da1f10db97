"""The program breaks a rule of its dialect.

What it does
    Calls check_valid_op of the dialect's verifier for each operator, and check_additional for the graph.

Why it matters
    A backend's dialect has rules of its own: which operators it takes, which memory formats. PyTorch's verifier
    refuses the program.

Example:
    add (aten.add.Tensor): observed 'add is not an operator of this backend', expected what dialect TOY allows

When it is wrong
    The sentence is the verifier's own; only it knows what is meant.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G11",
    name="dialect_refuses",
    title="the program breaks a rule of its dialect",
    severities={"dialect-refuses": Severity.ERROR},
    of_torch=True,
)
