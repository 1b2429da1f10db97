"""A size comes from the data and has no bound.

What it does
    Looks at symbols that come from data (item(), nonzero()): whether their range has both ends, and whether they
    are the size of a tensor.

Why it matters
    Inductor plans buffers and indices by the range. Without one it asks for guards that it cannot have (Could not
    guard on data-dependent expression), or the caller can ask for any amount of memory.

Example:
    item (u0): observed u0 has no upper bound, and is a size of zeros, expected torch._check(u0 <= ...) in forward

When it is wrong
    The size of nonzero of a dynamic tensor has no bound by nature (kind open-size).
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A04",
    name="unbacked_symbol",
    title="a size comes from the data and has no bound",
    severities={"no-bound": Severity.WARN, "open-size": Severity.INFO},
    names_target=True,
)
