"""A node calls a module or a method.

What it does
    Looks for nodes of the kinds call_module and call_method.

Why it matters
    An exported program consists of operators only; nothing after it can look into a module. PyTorch's verifier
    refuses the program.

Example:
    linear (linear): observed a node that calls the module linear, expected operators only

When it is wrong
    A graph of torch.fx.symbolic_trace has such nodes by right: it is no exported program.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G05",
    name="call_module",
    title="a node calls a module or a method",
    severities={"call-module": Severity.ERROR, "call-method": Severity.ERROR},
    of_torch=True,
)
