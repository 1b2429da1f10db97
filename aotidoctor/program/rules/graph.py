"""Rules of PyTorch's own verifier about the graph."""

from __future__ import annotations

from aotidoctor.model.evidence import ExportRule, error_severities

RULES: tuple[ExportRule, ...] = (
    ExportRule(
        code="VERIFY-G01",
        name="val_missing",
        title="a node of the graph has no metadata about its result",
        severities=error_severities("val-missing"),
        page="""A node of the graph has no metadata about its result.

What it does
    Looks for operator calls and inputs whose meta has no val. An operator without results needs none.

Why it matters
    Inductor reads shape, dtype and device of every node from val. PyTorch's verifier refuses the program.

Example:
    add_1 (aten.add.Tensor): observed no val in the node's meta, expected a val

When it is wrong
    Never in a program that was saved: the archive cannot hold such a node. It comes from a pass that created a node and
    did not copy the meta.
""",
    ),
    ExportRule(
        code="VERIFY-G02",
        name="val_kind",
        title="a node produces something that a program cannot hold",
        severities=error_severities("val-kind"),
        page="""A node produces something that a program cannot hold.

What it does
    Checks the val of every operator call and input: tensors, numbers, text, symbols, dtypes, devices, layouts,
    custom objects, and containers of these are allowed.

Why it matters
    Nothing after export can handle any other object. PyTorch's verifier refuses the program.

Example:
    add_1: observed a val that holds a builtins.object, expected tensors, numbers, text, symbols ...

When it is wrong
    Opaque types that are registered with torch are accepted, as in the verifier.
""",
    ),
    ExportRule(
        code="VERIFY-G03",
        name="operator_kind",
        title="a node calls something that is not an operator",
        severities=error_severities("operator-kind"),
        page="""A node calls something that is not an operator.

What it does
    Asks the installed verifier of the program's dialect about the target of every call, one at a time: operators,
    higher-order operators, and a list of Python and torch functions are allowed.

Why it matters
    A plain Python function has no schema: it cannot be saved, decomposed or compiled.

Example:
    relu (torch.relu): observed torch.relu (builtin_function_or_method), expected an operator (torch.ops...)

When it is wrong
    A backend's own dialect may allow more; register it with --setup, so that its verifier is used.
""",
    ),
    ExportRule(
        code="VERIFY-G04",
        name="not_functional",
        severities=error_severities("not-functional"),
        page="""An operator writes to its arguments, in a dialect that forbids it.

What it does
    Looks for operators whose schema declares that an argument is written to, in programs of any dialect except
    TRAINING.

Why it matters
    Passes after run_decompositions() move and drop nodes on the assumption that nothing is written to. PyTorch's
    verifier refuses the program.

Example:
    add_ (aten.add_.Tensor): observed aten.add_.Tensor writes to its arguments, expected an operator that changes no
    argument

When it is wrong
    A program returned by torch.export.export has the dialect TRAINING, where such operators are allowed.
""",
    ),
    ExportRule(
        code="VERIFY-G05",
        name="call_module",
        severities=error_severities("call-module", "call-method"),
        page="""A node calls a module or a method.

What it does
    Looks for nodes of the kinds call_module and call_method.

Why it matters
    An exported program consists of operators only; no later step can look into a module. PyTorch's verifier
    refuses the program.

Example:
    linear (linear): observed a node that calls the module linear, expected operators only

When it is wrong
    A graph of torch.fx.symbolic_trace legitimately has such nodes: it is not an exported program.
""",
    ),
    ExportRule(
        code="VERIFY-G06",
        name="attribute_absent",
        title="the graph reads an attribute that does not exist",
        severities=error_severities("attribute-absent", "attribute-name"),
        page="""The graph reads an attribute that does not exist.

What it does
    Follows the target of every get_attr node, in the graph module and in the graphs below it.

Why it matters
    The branch of a condition, or the constant, that the node represents is missing. PyTorch's verifier refuses the
    program.

Example:
    true_graph_0 (true_graph_0): observed no attribute true_graph_0 in the graph module, expected an existing attribute

When it is wrong
    Never: the name does not resolve.
""",
    ),
    ExportRule(
        code="VERIFY-G07",
        name="attribute_type",
        severities=error_severities("attribute-type"),
        page="""The graph reads an attribute of a kind that it must not read.

What it does
    Compares the types that get_attr nodes read with the types that the dialect allows: subgraphs and tree specs at the
    top, tensors and parameters only below it.

Why it matters
    Weights and constants of the top graph are its inputs, so that they can be replaced; one that is read directly is
    missing from the signature. PyTorch's verifier refuses the program.

Example:
    weight (weight): observed weight is a Parameter, expected one of GraphModule, TreeSpec

When it is wrong
    Modules that a backend inserted (lowered modules, AOTInductor's own) are allowed.
""",
    ),
    ExportRule(
        code="VERIFY-G08",
        name="lowered_module",
        title="a module that was lowered to a backend is incomplete",
        severities=error_severities("lowered-module"),
        page="""A module that was lowered to a backend is incomplete.

What it does
    Checks modules of the type LoweredBackendModule: they need the backend's name, its output (bytes), the list of its
    compile options and the original module.

Why it matters
    The backend's part cannot be run or restored. PyTorch's verifier refuses the program.

Example:
    lowered_module_0: observed a lowered module of backend 'demo' in which processed_bytes is a str

When it is wrong
    Modules that were lowered to aoti have different fields and are recognised.
""",
    ),
    ExportRule(
        code="VERIFY-G09",
        name="graph_lint",
        severities=error_severities("order", "foreign", "name-twice", "other"),
        page="""The graph is not well-formed.

What it does
    Looks for nodes that use a value before it is computed or a node of a different graph, and for names shared by two
    nodes; then runs torch.fx.Graph.lint itself.

Why it matters
    Such a graph cannot be run in order. PyTorch's verifier refuses the program.

Example:
    mul: observed argument add is used before it is computed, expected arguments that come earlier

When it is wrong
    Never: torch's own lint reports the same.
""",
    ),
    ExportRule(
        code="VERIFY-G10",
        name="dialect_unknown",
        title="the program uses a dialect that is not registered here",
        severities=error_severities("dialect-unknown"),
        names_target=True,
        page="""The program uses a dialect that is not registered here.

What it does
    Looks up the verifiers that the archive names.

Why it matters
    torch.export.load raises KeyError. The rules of the dialect are unknown, so operators are judged by the known
    dialects.

Example:
    EDGE: observed dialect 'EDGE', for which no verifier is registered here, expected ATEN, TRAINING, or one that
    --setup registers

When it is wrong
    Import the package that defines the dialect with --setup.
""",
    ),
    ExportRule(
        code="VERIFY-G11",
        name="dialect_refuses",
        severities=error_severities("dialect-refuses"),
        page="""The program breaks a rule of its dialect.

What it does
    Calls check_valid_op of the dialect's verifier for each operator, and check_additional for the graph.

Why it matters
    A backend's dialect has its own rules: which operators and which memory formats it accepts. PyTorch's verifier
    refuses the program.

Example:
    add (aten.add.Tensor): observed 'add is not an operator of this backend', expected what dialect TOY allows

When it is wrong
    The sentence comes from that verifier; aotidoctor does not interpret it.
""",
    ),
    ExportRule(
        code="VERIFY-G12",
        name="verifier_refuses",
        title="PyTorch's verifier refuses the program, for a reason that this version does not know",
        severities=error_severities("verifier-refuses"),
        page="""PyTorch's verifier refuses the program, for a reason that this version does not know.

What it does
    Runs the verifier of the installed torch if no other rule found anything, and reports its message.

Why it matters
    A newer torch may have rules that this version does not know yet.

Example:
    observed SpecViolationError: ..., expected what dialect ATEN allows

When it is wrong
    The verifier stops at the first violation; there may be more.
""",
    ),
)
