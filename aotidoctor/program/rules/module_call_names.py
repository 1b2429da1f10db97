"""A preserved submodule names a node that is not there.

What it does
    Follows the inputs and outputs in the module call graph to the nodes of the graph.

Why it matters
    torch.export.unflatten cannot put the submodule back. PyTorch's verifier refuses the program.

Example:
    add (body): observed output add of module body is not a node of the graph, expected an existing node

When it is wrong
    Never. A pass that replaces a node has to keep its name, or to rename it here as well.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S12",
    name="module_call_names",
    title="a preserved submodule names a node that does not exist",
    severities={"input": Severity.ERROR, "output": Severity.ERROR},
    of_torch=True,
)
