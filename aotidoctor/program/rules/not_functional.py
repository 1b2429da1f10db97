"""An operator writes to its arguments, in a dialect that forbids it.

What it does
    Looks for operators whose schema says that an argument is written to, in programs of another dialect than
    TRAINING.

Why it matters
    Passes after run_decompositions() move and drop nodes as if nothing were written to. PyTorch's verifier refuses
    the program.

Example:
    add_ (aten.add_.Tensor): observed aten.add_.Tensor writes to its arguments, expected an operator that changes no
    argument

When it is wrong
    What torch.export.export returns is of the dialect TRAINING, where such operators are allowed.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-G04",
    name="not_functional",
    title="an operator writes to its arguments, in a dialect that forbids it",
    severities={"not-functional": Severity.ERROR},
    of_torch=True,
)
