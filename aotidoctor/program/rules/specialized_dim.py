"""A dim that was meant to be dynamic is fixed.

What it does
    With --dynamic-shapes: compares what was asked of torch.export with the sizes of the program's inputs. Without:
    tells dims that have the size of a dynamic dim in the sample, and that size as a constant in the graph.

Why it matters
    The package takes one size. Others are refused, or read past the end of the input where nothing checks.

Example:
    args[1].shape[0]: observed args[1].shape[0] is 4, whatever the inputs, expected a dynamic size (batch)

When it is wrong
    Kind hint: equal numbers may be a coincidence. Kind automatic: Dim.AUTO may be fixed by right.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A05",
    name="specialized_dim",
    title="a dim that was meant to be dynamic is fixed",
    severities={"declared": Severity.ERROR, "automatic": Severity.INFO, "hint": Severity.INFO},
    names_target=True,
)
