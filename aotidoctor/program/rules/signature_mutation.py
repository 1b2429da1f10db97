"""A new value of an input leads to nothing.

What it does
    Takes the outputs that the signature counts as new values of buffers, parameters and inputs, and follows each to
    what it is the value of.

Why it matters
    The update would be lost, or written elsewhere. PyTorch's verifier refuses the program.

Example:
    add (counter): observed add is the new value of buffer counter, which does not exist, expected one of steps

When it is wrong
    Kind stray: the outputs are in another order than new values first, then results.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S10",
    name="signature_mutation",
    title="a new value of an input has no target",
    severities={
        "buffer": Severity.ERROR,
        "parameter": Severity.ERROR,
        "user-input": Severity.ERROR,
        "stray": Severity.ERROR,
    },
    of_torch=True,
)
