"""The graph reads an attribute of a kind that it must not read.

What it does
    Compares the type of what get_attr nodes read with what the dialect allows: subgraphs and tree specs at the top,
    tensors and parameters only below.

Why it matters
    Weights and constants of the top graph are its inputs, so that they can be exchanged; one that is read directly
    is invisible to the signature. PyTorch's verifier refuses the program.

Example:
    weight (weight): observed weight is a Parameter, expected one of GraphModule, TreeSpec

When it is wrong
    Modules that a backend has put in (lowered ones, AOTInductor's own) are allowed.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G07",
    name="attribute_type",
    title="the graph reads an attribute of a kind that it must not read",
    severities={"attribute-type": Severity.ERROR},
    of_torch=True,
)
