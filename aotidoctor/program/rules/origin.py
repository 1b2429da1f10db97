"""Of ``--against``: a package and a program."""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule, errors

RULES: tuple[ExportRule, ...] = (
    ExportRule(
        code="VERIFY-P00",
        name="origin_verdict",
        severities={
            "same": Severity.INFO,
            "unknown": Severity.INFO,
            "other-weights": Severity.ERROR,
            "other-program": Severity.ERROR,
        },
        names_target=True,
        page="""Whether the package was compiled from the program.

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
""",
    ),
    ExportRule(
        code="VERIFY-P01",
        name="origin_call",
        severities={
            "count": Severity.ERROR,
            "order": Severity.ERROR,
            "names": Severity.ERROR,
            "kind": Severity.ERROR,
            "kind-hint": Severity.INFO,
            "containers-hint": Severity.INFO,
        },
        names_target=True,
        page="""The call of the package is not the call of the program.

What it does
    Compares the leaves of the two call specs by their paths and order, and which of them are tensors.

Why it matters
    The compiler copies the call spec of the program. Another one means another program.

Example:
    args[1]['b']: observed args[1]['b'] at position 1 (2 leaves), expected args[1]['a'] (2 leaves), as in the
    program

When it is wrong
    Containers of another type around the same leaves are only a hint: versions of torch spell them differently.
""",
    ),
    ExportRule(
        code="VERIFY-P02",
        name="origin_inputs",
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
        page="""An input of the package is not what the program has there.

What it does
    Compares dtype, number of dims, sizes, ranges, and which dims share a size, input by input.

Why it matters
    The compiler may fix a size or narrow a range; it never widens one, and never changes a dtype or a fixed size.

Example:
    args[0].shape[1]: observed 1024, expected 512, as in the program

When it is wrong
    Narrower ranges, fixed sizes, strides and devices are hints (kinds that end in -hint): compiling can change
    them, and the program may have been moved to another device first.
""",
    ),
    ExportRule(
        code="VERIFY-P03",
        name="origin_outputs",
        severities=errors("count", "dtype", "shape"),
        names_target=True,
        page="""An output of the package is not what the program returns there.

What it does
    Compares number, dtype and fixed sizes of the outputs.

Why it matters
    The compiler keeps all three.

Example:
    result[1]: observed float16, expected float32, as in the program

When it is wrong
    Sizes that depend on inputs are not compared. Programs that return None or numbers are compared by their inputs
    only.
""",
    ),
    ExportRule(
        code="VERIFY-P04",
        name="origin_constants",
        title="a constant of the package is not in the program",
        severities=errors("name", "shape", "dtype"),
        names_target=True,
        page="""A constant of the package is not one of the program.

What it does
    Looks up each parameter and buffer of the package among those of the program: by name, then shape and dtype.

Why it matters
    Names of parameters are those of the module; a layer that the program does not have is another model.

Example:
    head.weight: observed a parameter head.weight, expected no parameter or buffer of that name, as in the program

When it is wrong
    Constants that freezing or folding made have names of their own and are not looked up.
""",
    ),
    ExportRule(
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
        page="""The kernels of the package come from other operators.

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
""",
    ),
    ExportRule(
        code="VERIFY-P06",
        name="origin_weights",
        title="the package contains different weights from the program",
        severities=errors("weights"),
        names_target=True,
        page="""The package carries other weights than the program.

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
""",
    ),
)
