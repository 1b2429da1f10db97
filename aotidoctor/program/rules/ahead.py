"""Rules about programs that make AOTInductor fail later."""

from __future__ import annotations

from aotidoctor.model.evidence import ExportRule, Severity

RULES: tuple[ExportRule, ...] = (
    ExportRule(
        code="VERIFY-A01",
        name="mixed_devices",
        severities={"mixed-device": Severity.WARN},
        page="""Tensors of the program are on several devices.

What it does
    Collects the devices of everything that the graphs compute. Single numbers on the CPU work with any device and are
    omitted.

Why it matters
    The package loads its constants to one device. Before torch 2.11 a kernel then receives a pointer of the wrong
    device: SIGSEGV, or an illegal memory access. Later versions keep them separate and copy at each call.

Example:
    buf: observed 12 tensors on cuda:0, 1 tensors on cpu; buf is on cpu, expected one device

When it is wrong
    A program that copies its inputs to the device on purpose, compiled with torch 2.11 or later.
""",
    ),
    ExportRule(
        code="VERIFY-A02",
        name="missing_shim",
        severities={"no-shim": Severity.WARN, "undeclared": Severity.ERROR},
        page="""An operator has no C shim in the installed torch.

What it does
    Decomposes the program as Inductor would, looks for operators that Inductor has no code for, and checks whether they
    are on the installed torch's list of C shims and whether the header for the program's device declares them.

Why it matters
    Without a shim the package calls the operator through the proxy executor: slower, and unavailable in a program
    without libtorch. An operator that is listed but not declared for the device (kind undeclared) does not compile:
    'aoti_torch_cpu_...' was not declared in this scope.

Example:
    linalg_eig (aten.linalg_eig.default): observed aten.linalg_eig.default has no C shim in this torch

When it is wrong
    Inductor may fuse or replace an operator first.
""",
    ),
    ExportRule(
        code="VERIFY-A03",
        name="custom_operator",
        severities={"custom-op": Severity.INFO, "no-fake": Severity.ERROR, "no-kernel": Severity.WARN},
        names_target=True,
        page="""The program calls a custom operator.

What it does
    Checks whether operators outside torch have a fake kernel (for shapes and dtypes, needed to compile) and a kernel
    for the device of their arguments.

Why it matters
    Without a fake kernel compiling fails. The package calls the operator by name: the process that loads the package
    must have registered it, with a kernel for that device.

Example:
    zoo::scale: observed zoo::scale has no fake kernel, expected a fake kernel

When it is wrong
    The check covers the verifying process, with --setup and --custom-op-library; other processes may have registered
    different operators.
""",
    ),
    ExportRule(
        code="VERIFY-A04",
        name="unbacked_symbol",
        severities={"no-bound": Severity.WARN, "open-size": Severity.INFO},
        names_target=True,
        page="""A size comes from the data and has no bound.

What it does
    Checks symbols that come from data (item(), nonzero()): whether their range has both bounds, and whether they are
    the size of a tensor.

Why it matters
    Inductor plans buffers and indices by the range. Without one it needs guards that are impossible (Could not guard on
    data-dependent expression), or the caller can request any amount of memory.

Example:
    item (u0): observed u0 has no upper bound, and is a size of zeros, expected torch._check(u0 <= ...) in forward

When it is wrong
    The size of nonzero() of a dynamic tensor is unbounded by nature (kind open-size).
""",
    ),
    ExportRule(
        code="VERIFY-A05",
        name="specialized_dim",
        severities={"declared": Severity.ERROR, "automatic": Severity.INFO, "hint": Severity.INFO},
        names_target=True,
        page="""A dim that was meant to be dynamic is fixed.

What it does
    With --dynamic-shapes: compares the dims requested from torch.export with the sizes of the program's inputs. Without
    it: finds dims that have the size of a dynamic dim in the sample, and that size as a constant in the graph.

Why it matters
    The package takes one size. Other sizes are refused, or read past the end of the input if nothing checks.

Example:
    args[1].shape[0]: observed args[1].shape[0] is 4, whatever the inputs, expected a dynamic size (batch)

When it is wrong
    Kind hint: equal numbers may be a coincidence. Kind automatic: Dim.AUTO may legitimately become fixed.
""",
    ),
    ExportRule(
        code="VERIFY-A06",
        name="symbol_range",
        severities={
            "empty": Severity.ERROR,
            "one-value": Severity.WARN,
            "example-outside": Severity.WARN,
            "range": Severity.INFO,
        },
        names_target=True,
        page="""The range of a dynamic size is not what it should be.

What it does
    Checks the range of every symbol: empty, only one size, a sample input outside it. Kind range states the range.

Why it matters
    Ranges become part of the package and are checked at run time only on request: sizes outside are computed anyway,
    correctly or not.

Example:
    args[0].shape[0]: observed s0 in 4..4: one size only, expected a range, or a static dim

When it is wrong
    torch.export treats 0 and 1 as special: a lower bound of 2 does not mean that 1 is refused.
""",
    ),
    ExportRule(
        code="VERIFY-A07",
        name="training_leftover",
        severities={"dropout": Severity.WARN, "batch-norm": Severity.WARN},
        page="""A layer is in training mode.

What it does
    Looks for dropout that is on, and for batch norm that uses the statistics of the batch, in all graphs.

Why it matters
    Results change from call to call, or depend on the rest of the batch; running statistics drift.

Example:
    dropout (aten.dropout.default): observed aten.dropout.default in training mode, expected model.eval() before
    export

When it is wrong
    Programs for training, and models that keep dropout on by design (Monte Carlo dropout).
""",
    ),
    ExportRule(
        code="VERIFY-A08",
        name="written_inputs",
        severities={
            "input-mutation": Severity.WARN,
            "buffer-mutation": Severity.INFO,
            "parameter-mutation": Severity.ERROR,
        },
        names_target=True,
        page="""The program writes to its inputs, buffers or parameters.

What it does
    Reads mutations from the signature, and follows in-place operators through views to the placeholder.

Why it matters
    The package writes into the caller's tensors. A buffer that changes is kept in the container: calls depend on
    earlier calls, and runners share it. A parameter that changes becomes an output of the compiled code that the out
    spec has no place for: no call of the package from Python returns.

Example:
    args[0]: observed args[0] is written to (aten.add_.Tensor), expected inputs that are only read

When it is wrong
    Key-value caches and running sums do this by design.
""",
    ),
    ExportRule(
        code="VERIFY-A09",
        name="large_constants",
        severities={"large-constants": Severity.WARN},
        names_target=True,
        page="""Weights and constants exceed 2 GB.

What it does
    Adds up parameters, buffers and constants.

Why it matters
    The weights cannot be a section of the library: 32-bit offsets end there. Inductor appends them and maps them at
    load, or keeps them outside; on some platforms this fails.

Example:
    w: observed 2,400,000,000 bytes of weights and constants, the largest w, expected at most 2,000,000,000 bytes

When it is wrong
    Folded constants and weights that are no longer used are not part of the package.
""",
    ),
    ExportRule(
        code="VERIFY-A10",
        name="unsupported_dtype",
        severities={"unsupported-input": Severity.ERROR, "unsupported": Severity.WARN},
        page="""A tensor is of a dtype that has no code path.

What it does
    Compares the dtypes of all tensors with those that the C++ code of the installed torch can name.

Why it matters
    Compiling fails with KeyError for an input of such a dtype, and usually for an intermediate tensor.

Example:
    x: observed x is torch.float8_e8m0fnu on cpu, expected a dtype that the generated C++ code can name

When it is wrong
    A buffer of such a dtype may be folded away before code is generated.
""",
    ),
    ExportRule(
        code="VERIFY-A11",
        name="non_tensor_input",
        title="an input is not a tensor",
        severities={"constant-input": Severity.INFO, "object-input": Severity.WARN, "symbolic-input": Severity.ERROR},
        names_target=True,
        page="""An input is not a tensor.

What it does
    Finds inputs that the signature declares as constants, as numbers that may change, or as custom objects.

Why it matters
    A package takes tensors and drops the rest. A constant is part of the code: a different value is ignored. A number
    that was to be dynamic is lost: with torch 2.13 compiling fails, or the sample's value is silently used.

Example:
    args[1]: observed args[1] is a number that may change (int s1), expected a tensor, or a size of a tensor

When it is wrong
    A number that is also the size of an input tensor is taken from that size and not reported.
""",
    ),
    ExportRule(
        code="VERIFY-A12",
        name="cannot_decompose",
        severities={"mutated-constant": Severity.ERROR, "refused": Severity.WARN},
        names_target=True,
        page="""The compiler cannot decompose the program.

What it does
    Decomposes the program as Inductor does before it generates code, and reports what PyTorch refuses.

Why it matters
    Compiling ends in the same step. A tensor from outside of the module (a closure, a global, a list) that the call
    writes to is a constant of the program, which nothing may write to: register it as a buffer.

Example:
    lifted_tensor_0: observed the program writes to the constant lifted_tensor_0, expected a buffer

When it is wrong
    Kind refused: a compile takes a similar way, and not exactly the same one.
""",
    ),
    ExportRule(
        code="VERIFY-A13",
        name="merged_input",
        title="an input is never read, another one stands in its place",
        severities={"merged": Severity.ERROR},
        names_target=True,
        page="""An input is never read, and another one stands in its place.

What it does
    Looks for inputs that the graph never reads although a line of the model names them, and whose example in the
    archive is the same tensor as that of another input.

Why it matters
    torch.export.export(model, (x, x)) follows the tensor, not the argument. The package is right only where both inputs
    are equal, and says nothing otherwise.

Example:
    args[0]: observed never read: args[1] stands in its place, expected an input that the program reads

When it is wrong
    An input that is named in a line of the model, and does nothing there.
""",
    ),
)
