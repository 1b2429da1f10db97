"""An input is no tensor.

What it does
    Looks at inputs that the signature has as constants, as numbers that may change, or as custom objects.

Why it matters
    A package takes tensors and drops the rest. A constant is part of the code: another value is ignored. A number
    that was to be dynamic is lost: with torch 2.13 compiling fails, or the sample's value stays in force without a
    word.

Example:
    args[1]: observed args[1] is a number that may change (int s1), expected a tensor, or a size of a tensor

When it is wrong
    A number that is also the size of an input tensor is taken from there, and not told.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A11",
    name="non_tensor_input",
    title="an input is not a tensor",
    severities={"constant-input": Severity.INFO, "object-input": Severity.WARN, "symbolic-input": Severity.ERROR},
    names_target=True,
)
