"""The graph is not well-formed.

What it does
    Looks for nodes that use a value before it is computed, or a node of another graph, and for names that two nodes
    have; then asks torch.fx.Graph.lint itself.

Why it matters
    Such a graph cannot be run in order. PyTorch's verifier refuses the program.

Example:
    mul: observed argument add is used before it is computed, expected arguments that come earlier

When it is wrong
    Never: torch's own lint says the same.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G09",
    name="graph_lint",
    title="the graph is not well-formed",
    severities={
        "order": Severity.ERROR,
        "foreign": Severity.ERROR,
        "name-twice": Severity.ERROR,
        "other": Severity.ERROR,
    },
    of_torch=True,
)
