"""An input of the signature is of a kind that does not exist.

What it does
    Compares the kind of every input spec with those of torch.export.

Why it matters
    Nobody knows where the value comes from. PyTorch's verifier refuses the program.

Example:
    x: observed kind RNG_STATE, expected USER_INPUT, PARAMETER, BUFFER, CONSTANT_TENSOR, CUSTOM_OBJ, TOKEN

When it is wrong
    A newer torch may have more kinds; verify with the torch that made the program.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-S08",
    name="signature_input_kind",
    title="an input of the signature is of a kind that does not exist",
    severities={"input-kind": Severity.ERROR},
    of_torch=True,
)
