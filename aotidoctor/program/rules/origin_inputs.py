"""An input of the package is not what the program has there.

What it does
    Compares dtype, number of dims, sizes, ranges, and which dims share a size, input by input.

Why it matters
    The compiler may fix a size or narrow a range; it never widens one, and never changes a dtype or a fixed size.

Example:
    args[0].shape[1]: observed 1024, expected 512, as in the program

When it is wrong
    Narrower ranges, fixed sizes, strides and devices are hints (kinds that end in -hint): compiling can change
    them, and the program may have been moved to another device first.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-P02",
    name="origin_inputs",
    title="an input of the package is not what the program has there",
    severities={
        "dtype": Severity.ERROR,
        "rank": Severity.ERROR,
        "size": Severity.ERROR,
        "dynamic": Severity.ERROR,
        "specialized": Severity.ERROR,
        "range": Severity.ERROR,
        "shared-size": Severity.ERROR,
        "shared-size-hint": Severity.INFO,
        "dynamic-hint": Severity.INFO,
        "specialized-hint": Severity.INFO,
        "range-hint": Severity.INFO,
        "device-hint": Severity.INFO,
        "strides-hint": Severity.INFO,
    },
    names_target=True,
)
