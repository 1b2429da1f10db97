"""A layer is in training mode.

What it does
    Looks for dropout that is on, and for batch norm that uses the statistics of the batch, in all graphs.

Why it matters
    Results change from call to call, or hang on what else is in the batch; running statistics drift.

Example:
    dropout (aten.dropout.default): observed aten.dropout.default in training mode, expected model.eval() before
    export

When it is wrong
    Programs for training, and models that keep dropout on by design (Monte Carlo dropout).
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A07",
    name="training_leftover",
    title="a layer is in training mode",
    severities={"dropout": Severity.WARN, "batch-norm": Severity.WARN},
)
