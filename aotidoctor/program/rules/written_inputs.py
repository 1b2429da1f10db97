"""The program writes to its inputs, buffers or parameters.

What it does
    Takes mutations from the signature, and follows operators that work in place through views to the placeholder.

Why it matters
    The package writes into the caller's tensors. A buffer that changes lives in the container: calls depend on
    those before, and runners share it. A parameter that changes becomes an output of the compiled code for which the
    out spec has no place: no call of the package from Python returns.

Example:
    args[0]: observed args[0] is written to (aten.add_.Tensor), expected inputs that are only read

When it is wrong
    Key-value caches and running sums are meant to.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A08",
    name="written_inputs",
    title="the program writes to its inputs, buffers or parameters",
    severities={
        "input-mutation": Severity.WARN,
        "buffer-mutation": Severity.INFO,
        "parameter-mutation": Severity.ERROR,
    },
    names_target=True,
)
