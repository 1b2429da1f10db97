"""The graph reads an attribute that is not there.

What it does
    Follows the target of every get_attr node, in the graph module and in the graphs below it.

Why it matters
    The branch of a condition, or the constant, that the node stands for is missing. PyTorch's verifier refuses the
    program.

Example:
    true_graph_0 (true_graph_0): observed no attribute true_graph_0 in the graph module, expected an attribute that
    is there

When it is wrong
    Never: the name leads nowhere.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G06",
    name="attribute_absent",
    title="the graph reads an attribute that does not exist",
    severities={"attribute-absent": Severity.ERROR, "attribute-name": Severity.ERROR},
    of_torch=True,
)
