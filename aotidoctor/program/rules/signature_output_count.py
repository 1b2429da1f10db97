"""The graph and the signature have different numbers of outputs.

What it does
    Counts what the graph returns and the output specs.

Why it matters
    New values of buffers and results of the model would be taken for each other. PyTorch's verifier refuses the
    program.

Example:
    output: observed the graph returns 2 (add, mul), the signature has 1 (mul)

When it is wrong
    Never. A pass that adds an output has to change the signature as well.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S09",
    name="signature_output_count",
    title="the graph and the signature have different numbers of outputs",
    severities={"output-count": Severity.ERROR},
    of_torch=True,
)
