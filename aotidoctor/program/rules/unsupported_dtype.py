"""A tensor is of a dtype that has no code path.

What it does
    Compares the dtypes of all tensors with those that the C++ code of the installed torch can name.

Why it matters
    Compiling fails with KeyError for an input of such a dtype, and mostly for an intermediate tensor.

Example:
    x: observed x is torch.float8_e8m0fnu on cpu, expected a dtype that the generated C++ code can name

When it is wrong
    A buffer of such a dtype may be folded away before code is generated.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A10",
    name="unsupported_dtype",
    title="a tensor is of a dtype that has no code path",
    severities={"unsupported-input": Severity.ERROR, "unsupported": Severity.WARN},
)
