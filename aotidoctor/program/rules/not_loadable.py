"""The program cannot be rebuilt from its archive.

What it does
    Rebuilds the program with the installed torch, without its verifier.

Why it matters
    torch.export.load fails in the same way. Rules that need the graph are not judged by the child; what the archive
    itself tells is.

Example:
    add: observed SerializeError: ..., expected a program that this torch can rebuild

When it is wrong
    A program of a newer torch, or one whose inputs are of a class that --setup has to register with pytree.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-L01",
    name="not_loadable",
    title="the program cannot be rebuilt from its archive",
    severities={"json": Severity.ERROR, "node": Severity.ERROR, "program": Severity.ERROR},
)
