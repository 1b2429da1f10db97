"""A module that was handed to a backend is incomplete.

What it does
    Looks at modules of the type LoweredBackendModule: they need the backend's name, what it made (bytes), the list
    of its compile options and the module that was there before.

Why it matters
    The backend's part cannot be run or put back. PyTorch's verifier refuses the program.

Example:
    lowered_module_0: observed a lowered module of backend 'demo' in which processed_bytes is a str

When it is wrong
    Modules that were lowered to aoti carry other fields and are recognised.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G08",
    name="lowered_module",
    title="a module that was lowered to a backend is incomplete",
    severities={"lowered-module": Severity.ERROR},
    of_torch=True,
)
