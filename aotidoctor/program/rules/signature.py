"""Rules of PyTorch's own verifier about the signature."""

from __future__ import annotations

from aotidoctor.model.evidence import ExportRule, error_severities

RULES: tuple[ExportRule, ...] = (
    ExportRule(
        code="VERIFY-S01",
        name="signature_input_count",
        severities=error_severities("input-count"),
        page="""The graph and the signature have different numbers of inputs.

What it does
    Counts placeholders and input specs, and names those that only one side has.

Why it matters
    Every input after the missing one would be confused with its neighbour. PyTorch's verifier refuses the program.

Example:
    y: observed 2 placeholders in the graph, 1 inputs in the signature; only in the graph: y

When it is wrong
    Never. A pass that adds or removes a placeholder has to change the signature as well.
""",
    ),
    ExportRule(
        code="VERIFY-S02",
        name="signature_input_name",
        severities=error_severities("input-name"),
        page="""An input of the signature does not match the placeholder at its position.

What it does
    Compares the names of input specs with the placeholders, in order.

Why it matters
    Weights and inputs go to placeholders by position: two that are swapped give wrong numbers, or an error elsewhere.
    PyTorch's verifier refuses the program.

Example:
    p_weight: observed the signature has p_bias where the graph has p_weight, expected p_weight

When it is wrong
    Never. A pass that renames a placeholder has to rename it in the signature as well.
""",
    ),
    ExportRule(
        code="VERIFY-S03",
        name="signature_parameter",
        title="a parameter of the signature is missing, or is not a parameter",
        severities=error_severities("not-tensor", "no-target", "absent", "not-parameter"),
        names_target=True,
        page="""A parameter of the signature is missing, or is not a parameter.

What it does
    Follows every parameter of the signature to the state dict.

Why it matters
    The program has a weight without a value. PyTorch's verifier refuses it.

Example:
    linear.weight: observed parameter linear.weight is not in the state dict, expected its value

When it is wrong
    Never. If the weights were left out of an archive on purpose, add them before you verify it.
""",
    ),
    ExportRule(
        code="VERIFY-S04",
        name="signature_buffer",
        title="a buffer of the signature is missing, or is where it must not be",
        severities=error_severities("not-tensor", "no-target", "no-persistence", "absent", "unwanted"),
        names_target=True,
        page="""A buffer of the signature is missing, or is where it must not be.

What it does
    Follows every buffer of the signature: a persistent one is in the state dict (or among the constants), one that
    is not persistent is not in the state dict.

Why it matters
    The program has a buffer without a value, or with two values. PyTorch's verifier refuses it.

Example:
    mean: observed the state dict holds mean, which is not persistent, expected no entry: it is among the
    constants

When it is wrong
    Versions of torch before 2.11 do not look for persistent buffers among the constants; the installed one decides.
""",
    ),
    ExportRule(
        code="VERIFY-S05",
        name="signature_constant",
        title="a constant tensor of the signature is missing",
        severities=error_severities("not-tensor", "no-target", "absent"),
        names_target=True,
        page="""A constant tensor of the signature is missing.

What it does
    Follows every constant tensor of the signature to the program's constants.

Why it matters
    The program has a constant without a value. PyTorch's verifier refuses it.

Example:
    lifted_tensor_0: observed constant tensor lifted_tensor_0 is not among the program's
    constants

When it is wrong
    Never.
""",
    ),
    ExportRule(
        code="VERIFY-S06",
        name="signature_custom_object",
        title="a custom object of the signature is missing, or is not a custom object",
        severities=error_severities("not-object", "no-target", "absent"),
        names_target=True,
        page="""A custom object of the signature is missing, or is not a custom object.

What it does
    Follows every custom object (TorchBind) of the signature to the program's constants.

Why it matters
    The program calls methods of an object that it does not have. PyTorch's verifier refuses it.

Example:
    queue: observed custom object queue is not among the program's constants, expected its value

When it is wrong
    Never.
""",
    ),
    ExportRule(
        code="VERIFY-S07",
        name="signature_token",
        severities=error_severities("not-token"),
        page="""A token of the signature is not a token.

What it does
    Checks inputs of the kind TOKEN, which keep operators with side effects in order.

Why it matters
    The order of side effects would depend on a tensor. PyTorch's verifier refuses the program.

Example:
    token: observed a token that is a TensorArgument, expected a TokenArgument

When it is wrong
    Never.
""",
    ),
    ExportRule(
        code="VERIFY-S08",
        name="signature_input_kind",
        severities=error_severities("input-kind"),
        page="""An input of the signature is of a kind that does not exist.

What it does
    Compares the kind of every input spec with those of torch.export.

Why it matters
    The source of the value is unknown. PyTorch's verifier refuses the program.

Example:
    x: observed kind RNG_STATE, expected USER_INPUT, PARAMETER, BUFFER, CONSTANT_TENSOR, CUSTOM_OBJ, TOKEN

When it is wrong
    A newer torch may have more kinds; verify with the torch that made the program.
""",
    ),
    ExportRule(
        code="VERIFY-S09",
        name="signature_output_count",
        severities=error_severities("output-count"),
        page="""The graph and the signature have different numbers of outputs.

What it does
    Counts what the graph returns and the output specs.

Why it matters
    New values of buffers and results of the model would be confused. PyTorch's verifier refuses the
    program.

Example:
    output: observed the graph returns 2 (add, mul), the signature has 1 (mul)

When it is wrong
    Never. A pass that adds an output has to change the signature as well.
""",
    ),
    ExportRule(
        code="VERIFY-S10",
        name="signature_mutation",
        title="a new value of an input has no target",
        severities=error_severities("buffer", "parameter", "user-input", "stray"),
        page="""A new value of an input has no target.

What it does
    Takes the outputs that the signature declares as new values of buffers, parameters and inputs, and looks up the
    target of each.

Why it matters
    The update would be lost, or written to the wrong place. PyTorch's verifier refuses the program.

Example:
    add (counter): observed add is the new value of buffer counter, which does not exist, expected one of steps

When it is wrong
    Kind stray: the outputs are not in the order of new values first, then results.
""",
    ),
    ExportRule(
        code="VERIFY-S11",
        name="signature_output_order",
        title="the results are in a different order from the signature",
        severities=error_severities("output-order"),
        page="""The results are in a different order from the signature.

What it does
    Compares the names of what the graph returns, after the new values of inputs, with the user outputs of the
    signature.

Why it matters
    The caller would silently get one result in place of another. PyTorch's verifier refuses the program.

Example:
    mul: observed the graph returns mul where the signature has add, expected add

When it is wrong
    Never.
""",
    ),
    ExportRule(
        code="VERIFY-S12",
        name="module_call_names",
        title="a preserved submodule names a node that does not exist",
        severities=error_severities("input", "output"),
        page="""A preserved submodule names a node that does not exist.

What it does
    Follows the inputs and outputs in the module call graph to the nodes of the graph.

Why it matters
    torch.export.unflatten cannot restore the submodule. PyTorch's verifier refuses the program.

Example:
    add (body): observed output add of module body is not a node of the graph, expected an existing node

When it is wrong
    Never. A pass that replaces a node has to keep its name, or to rename it here as well.
""",
    ),
    ExportRule(
        code="VERIFY-S13",
        name="output_node",
        severities=error_severities("no-output-node", "not-a-tuple"),
        page="""The graph does not end in an output node that returns a tuple.

What it does
    Checks the last node: it must be the output, and return a tuple.

Why it matters
    Outputs cannot be matched with the signature. PyTorch's verifier fails on the program.

Example:
    add: observed the last node is call_function add, expected an output node at the end

When it is wrong
    Subgraphs of conditions may return a bare value; the program itself may not.
""",
    ),
)
