"""Weights, constants or sample inputs are missing from the archive.

What it does
    Reads each part by itself, and goes on without it.

Why it matters
    torch.export.load fails.

Example:
    weights: observed AssertionError: data/weights/model_weights_config.json not found in PT2 archive

When it is wrong
    Archives of torch 2.6 and earlier are built otherwise, and read by torch as a whole.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-L03",
    name="parts_missing",
    title="weights, constants or sample inputs are missing from the archive",
    severities={"weights": Severity.ERROR, "constants": Severity.ERROR, "sample-inputs": Severity.ERROR},
    names_target=True,
)
