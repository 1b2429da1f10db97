"""The package carries other weights than the program.

What it does
    Compares the constants byte by byte, without loading them: in the library, appended to it, in a .blob, or one
    file each, against the storages of the archive.

Why it matters
    Same code, other numbers: an older checkpoint, a flipped bit, an average or an adapter that was merged into one
    of the two.

Example:
    l.weight: observed l.weight[0, 3]: bit 30 is flipped: 4.3e+37 in the package, 0.126 in the reference, expected
    the program's weights

When it is wrong
    Weights that nobody ships (external), that were folded, or written into the code cannot be compared; the verdict
    says so.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-P06",
    name="origin_weights",
    title="the package contains different weights from the program",
    severities={"weights": Severity.ERROR},
    names_target=True,
)
