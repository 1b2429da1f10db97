"""The kernels of the package come from other operators.

What it does
    Looks for the custom operators of the package among those of the program, and for the names of the program's
    operators in those of the kernels. The kernels list the operators and the nodes that they were made from: a function
    (gelu, relu) that the program lacks, or one between an input and an output of the program of which the package shows
    no trace, is another program. gelu by tanh where the program has it by erf is one, or a fault of the compiler.

Why it matters
    Programs with the same inputs and outputs differ in their operators.

Example:
    cpp_fused_add_0: observed kernels cpp_fused_add_0, expected operators mul, sin, as in the program

When it is wrong
    Decompositions and fusion make other operators of them: but for such functions it is never more than a hint.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-P05",
    name="origin_operators",
    title="the kernels of the package come from different operators",
    severities={
        "functions": Severity.ERROR,
        "functions-hint": Severity.WARN,
        "custom-hint": Severity.INFO,
        "kernels-hint": Severity.INFO,
    },
    names_target=True,
)
