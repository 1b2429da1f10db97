"""Rules of ``--package``, which compares a package with a program."""

from __future__ import annotations

from aotidoctor.model.evidence import ExportRule, Severity, error_severities

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
        page="""Was the package compiled from the program?

What it does
    Summarises what --package compared: call spec, inputs, outputs, constants by name and by content, operators. Nothing
    is loaded or run. "same" means that nothing that could be compared differs; the rest is listed as not checked.

Why it matters
    A package that was compiled from a different program passes all other checks, and gives the numbers of a different
    model or checkpoint.

Example:
    model.pt2: observed this program with different weights: only l.weight differs (192 of 192 elements), expected a
    package that was compiled from exported.pt2

When it is wrong
    Two programs with the same call spec, the same weights and similar operators cannot be distinguished. Constants of
    up to 8 elements are written into the code, and folded constants no longer exist: neither is compared.
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
        page="""The call spec of the package differs from that of the program.

What it does
    Compares the leaves of the two call specs by their paths and order, and which of them are tensors.

Why it matters
    The compiler copies the call spec of the program. A different call spec means a different program.

Example:
    args[1]['b']: observed args[1]['b'] at position 1 (2 leaves), expected args[1]['a'] (2 leaves), as in the
    program

When it is wrong
    Containers of a different type around the same leaves are only a hint: versions of torch write them differently.
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
        page="""An input of the package differs from the program's input.

What it does
    Compares dtype, number of dims, sizes, ranges, and which dims share a size, input by input.

Why it matters
    The compiler may fix a size or narrow a range; it never widens one, and never changes a dtype or a fixed size.

Example:
    args[0].shape[1]: observed 1024, expected 512, as in the program

When it is wrong
    Narrower ranges, fixed sizes, strides and devices are hints (kinds that end in -hint): compiling can change
    them, and the program may have been moved to a different device first.
""",
    ),
    ExportRule(
        code="VERIFY-P03",
        name="origin_outputs",
        severities={**error_severities("count", "dtype", "shape"), "dtype-hint": Severity.INFO},
        names_target=True,
        page="""An output of the package differs from the program's output.

What it does
    Compares number, dtype and fixed sizes of the outputs.

Why it matters
    The compiler preserves all three, but for torch.any and torch.all of uint8: the compiled code gives bool (kind
    dtype-hint).

Example:
    result[1]: observed float16, expected float32, as in the program

When it is wrong
    Sizes that depend on inputs are not compared. For programs that return None or numbers, only the inputs are
    compared.
""",
    ),
    ExportRule(
        code="VERIFY-P04",
        name="origin_constants",
        title="a constant of the package is not in the program",
        severities=error_severities("name", "shape", "dtype"),
        names_target=True,
        page="""A constant of the package is not in the program.

What it does
    Looks up each parameter and buffer of the package among those of the program: by name, then shape and dtype.

Why it matters
    Parameters have the names of the module; a layer that the program lacks means a different model.

Example:
    head.weight: observed a parameter head.weight, expected no parameter or buffer of that name, as in the program

When it is wrong
    Constants made by freezing or folding have separate names and are not looked up.
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
        page="""The kernels of the package come from different operators.

What it does
    Looks for the custom operators of the package among those of the program, and for the names of the program's
    operators in those of the kernels. The kernels list the operators and the nodes that they were made from: a function
    (gelu, relu) that the program lacks, or one between an input and an output of the program that leaves no trace in
    the package, means a different program. gelu by tanh where the program computes it by erf means a different program
    or a compiler fault.

Why it matters
    Programs with the same inputs and outputs differ in their operators.

Example:
    cpp_fused_add_0: observed kernels cpp_fused_add_0, expected operators mul, sin, as in the program

When it is wrong
    Decompositions and fusion turn them into other operators: except for such functions, the finding is only a hint.
""",
    ),
    ExportRule(
        code="VERIFY-P06",
        name="origin_weights",
        title="the package contains different weights from the program",
        severities=error_severities("weights"),
        names_target=True,
        page="""The package contains different weights from the program.

What it does
    Compares the constants byte by byte, without loading them: in the library, appended to it, in a .blob, or one
    file each, against the storages of the archive.

Why it matters
    Same code, different numbers: an older checkpoint, a flipped bit, or an average or adapter that was merged into one
    of the two.

Example:
    l.weight: observed l.weight[0, 3]: bit 30 is flipped: 4.3e+37 in the package, 0.126 in the reference, expected
    the program's weights

When it is wrong
    Weights that are not shipped (external), were folded, or were written into the code cannot be compared; the verdict
    states this.
""",
    ),
)
