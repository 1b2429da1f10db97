"""The graph and the signature have different numbers of inputs.

What it does
    Counts placeholders and input specs, and names those that only one side has.

Why it matters
    Every input after the missing one would be taken for its neighbour. PyTorch's verifier refuses the program.

Example:
    y: observed 2 placeholders in the graph, 1 inputs in the signature; only in the graph: y

When it is wrong
    Never. A pass that adds or removes a placeholder has to change the signature as well.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S01",
    name="signature_input_count",
    title="the graph and the signature have different numbers of inputs",
    severities={"input-count": Severity.ERROR},
    of_torch=True,
)
