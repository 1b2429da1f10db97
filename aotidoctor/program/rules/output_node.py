"""The graph does not end in an output of its own form.

What it does
    Looks at the last node: it must be the output, and return a tuple.

Why it matters
    Outputs cannot be matched with the signature. PyTorch's verifier fails on the program.

Example:
    add: observed the last node is call_function add, expected an output node at the end

When it is wrong
    Subgraphs of conditions may return a bare value; the program itself may not.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S13",
    name="output_node",
    title="the graph does not end in an output of its own form",
    severities={"no-output-node": Severity.ERROR, "not-a-tuple": Severity.ERROR},
    of_torch=True,
)
