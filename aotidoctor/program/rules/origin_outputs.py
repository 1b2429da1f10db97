"""An output of the package is not what the program returns there.

What it does
    Compares number, dtype and fixed sizes of the outputs.

Why it matters
    The compiler keeps all three.

Example:
    result[1]: observed float16, expected float32, as in the program

When it is wrong
    Sizes that depend on inputs are not compared. Programs that return None or numbers are compared by their inputs
    only.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-P03",
    name="origin_outputs",
    title="an output of the package is not what the program returns there",
    severities={"count": Severity.ERROR, "dtype": Severity.ERROR, "shape": Severity.ERROR},
    names_target=True,
)
