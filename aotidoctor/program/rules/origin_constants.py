"""A constant of the package is not one of the program.

What it does
    Looks up each parameter and buffer of the package among those of the program: by name, then shape and dtype.

Why it matters
    Names of parameters are those of the module; a layer that the program does not have is another model.

Example:
    head.weight: observed a parameter head.weight, expected no parameter or buffer of that name, as in the program

When it is wrong
    Constants that freezing or folding made have names of their own and are not looked up.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-P04",
    name="origin_constants",
    title="a constant of the package is not in the program",
    severities={"name": Severity.ERROR, "shape": Severity.ERROR, "dtype": Severity.ERROR},
    names_target=True,
)
