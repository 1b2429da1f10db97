"""A node gives something that a program cannot hold.

What it does
    Looks into the val of every operator call and input: tensors, numbers, text, symbols, dtypes, devices, layouts,
    custom objects, and containers of these are allowed.

Why it matters
    Nothing after export knows what to do with another object. PyTorch's verifier refuses the program.

Example:
    add_1: observed a val that holds a builtins.object, expected tensors, numbers, text, symbols ...

When it is wrong
    Opaque types that are registered with torch are let through, as the verifier does.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G02",
    name="val_kind",
    title="a node produces something that a program cannot hold",
    severities={"val-kind": Severity.ERROR},
    of_torch=True,
)
