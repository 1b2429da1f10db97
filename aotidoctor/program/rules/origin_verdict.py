"""Whether the package was compiled from the program.

What it does
    Sums up what --against compared: call spec, inputs, outputs, constants by name and by content, operators.
    Nothing is loaded or run. "same" means that nothing differs of what could be compared; the rest is listed as not
    checked.

Why it matters
    A package that was compiled from something else passes every check of its own, and gives the numbers of another
    model or another checkpoint.

Example:
    model.pt2: observed this program with different weights: only l.weight differs (192 of 192 elements), expected a
    package that was compiled from exported.pt2

When it is wrong
    Two programs with one call spec, the same weights and similar operators cannot be told apart. Constants of up to
    8 elements are written into the code, folded ones are not there any more: neither is compared.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-P00",
    name="origin_verdict",
    title="whether the package was compiled from the program",
    severities={
        "same": Severity.INFO,
        "unknown": Severity.INFO,
        "other-weights": Severity.ERROR,
        "other-program": Severity.ERROR,
    },
    names_target=True,
)
