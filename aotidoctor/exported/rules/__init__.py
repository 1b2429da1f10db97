"""The rules of ``aotidoctor verify``, in the order of their codes; one file each, whose docstring is the manual page.

G and S are those of PyTorch's own verifier (graph and signature), A is what makes AOTInductor fail later, L is
loading, P is ``--against``: a package and a program.
"""

from __future__ import annotations

from aotidoctor.exported.rules import (
    attribute_absent,
    attribute_type,
    call_module,
    custom_operator,
    dialect_refuses,
    dialect_unknown,
    graph_lint,
    large_constants,
    lowered_module,
    missing_shim,
    mixed_devices,
    module_call_names,
    non_tensor_input,
    not_functional,
    not_loadable,
    operator_kind,
    operator_missing,
    origin_call,
    origin_constants,
    origin_inputs,
    origin_operators,
    origin_outputs,
    origin_verdict,
    origin_weights,
    output_node,
    parts_missing,
    schema_version,
    setup_raised,
    signature_buffer,
    signature_constant,
    signature_custom_object,
    signature_input_count,
    signature_input_kind,
    signature_input_name,
    signature_mutation,
    signature_output_count,
    signature_output_order,
    signature_parameter,
    signature_token,
    specialized_dim,
    symbol_range,
    training_leftover,
    unbacked_symbol,
    unsupported_dtype,
    val_kind,
    val_missing,
    verifier_refuses,
    written_inputs,
)
from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULES: tuple[ExportRule, ...] = (
    val_missing.RULE,
    val_kind.RULE,
    operator_kind.RULE,
    not_functional.RULE,
    call_module.RULE,
    attribute_absent.RULE,
    attribute_type.RULE,
    lowered_module.RULE,
    graph_lint.RULE,
    dialect_unknown.RULE,
    dialect_refuses.RULE,
    verifier_refuses.RULE,
    signature_input_count.RULE,
    signature_input_name.RULE,
    signature_parameter.RULE,
    signature_buffer.RULE,
    signature_constant.RULE,
    signature_custom_object.RULE,
    signature_token.RULE,
    signature_input_kind.RULE,
    signature_output_count.RULE,
    signature_mutation.RULE,
    signature_output_order.RULE,
    module_call_names.RULE,
    output_node.RULE,
    mixed_devices.RULE,
    missing_shim.RULE,
    custom_operator.RULE,
    unbacked_symbol.RULE,
    specialized_dim.RULE,
    symbol_range.RULE,
    training_leftover.RULE,
    written_inputs.RULE,
    large_constants.RULE,
    unsupported_dtype.RULE,
    non_tensor_input.RULE,
    not_loadable.RULE,
    operator_missing.RULE,
    parts_missing.RULE,
    schema_version.RULE,
    setup_raised.RULE,
)

ORIGIN_RULES: tuple[ExportRule, ...] = (
    origin_verdict.RULE,
    origin_call.RULE,
    origin_inputs.RULE,
    origin_outputs.RULE,
    origin_constants.RULE,
    origin_operators.RULE,
    origin_weights.RULE,
)
"""Those of ``--against``: a package and a program, not a program alone."""

BY_CODE = {rule.code: rule for rule in (*RULES, *ORIGIN_RULES)}


def severity_of(code: str, kind: str) -> Severity:
    """How bad ``kind`` of the rule ``code`` is. Raises ``KeyError`` for what no rule reports."""
    return BY_CODE[code].severities[kind]
