"""A node of the graph does not say what it gives.

What it does
    Looks for operator calls and inputs whose meta has no val. An operator without results needs none.

Why it matters
    Inductor reads shape, dtype and device of every node from there. PyTorch's verifier refuses the program.

Example:
    add_1 (aten.add.Tensor): observed no val in the node's meta, expected a val

When it is wrong
    Never in a program that was saved: the archive cannot hold such a node. It comes from a pass that made a node
    and did not copy the meta.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G01",
    name="val_missing",
    title="a node of the graph has no metadata about its result",
    severities={"val-missing": Severity.ERROR},
    of_torch=True,
)
