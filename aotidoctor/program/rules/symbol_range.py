"""The range of a dynamic size is not what it should be.

What it does
    Looks at the range of every symbol: nothing in it, one size only, a sample input outside of it. Kind range
    states it.

Why it matters
    Ranges become part of the package, and are checked at run time only where that was asked for: sizes outside are
    computed all the same, wrongly or not.

Example:
    args[0].shape[0]: observed s0 in 4..4: one size only, expected a range, or a static dim

When it is wrong
    torch.export takes 0 and 1 for special: a lower bound of 2 does not mean that 1 is refused.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A06",
    name="symbol_range",
    title="the range of a dynamic size is not what it should be",
    severities={
        "empty": Severity.ERROR,
        "one-value": Severity.WARN,
        "example-outside": Severity.WARN,
        "range": Severity.INFO,
    },
    names_target=True,
)
