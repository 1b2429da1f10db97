"""What --setup or --custom-op-library names could not be loaded.

What it does
    Loads operator libraries, then the setup file, before the program.

Why it matters
    Operators and classes of the program are not registered, so it cannot be rebuilt.

Example:
    ops.py: observed ModuleNotFoundError: No module named 'my_ops', expected a setup file that can be imported

When it is wrong
    The child has this interpreter's packages and the folder of the setup file in sys.path.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-L06",
    name="setup_raised",
    title="what --setup or --custom-op-library names could not be loaded",
    severities={"setup": Severity.ERROR},
    names_target=True,
)
