"""Which rules each program breaks: ``code kind`` of every finding that is no note, and the notes that it must have.

This module knows names only, so that tests are collected without torch; ``judge.py`` makes the programs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Case:
    """``source`` is ``healthy``, ``broken`` or ``archive``. ``about`` is the node or target of the first finding.

    ``loads`` is False where torch cannot rebuild the program, so that its verifier is not asked.
    """

    name: str
    source: str
    expected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    about: str | None = None
    declared: object = None
    loads: bool = True


def healthy(name, *notes, declared=None):
    return Case(name=name, source="healthy", notes=notes, declared=declared)


def broken(name, *expected, about=None, notes=(), source="broken", declared=None, loads=True):
    return Case(name=name, source=source, expected=expected, about=about, notes=notes, declared=declared, loads=loads)


def archive(name, *expected, about=None, notes=(), loads=True):
    return broken(name, *expected, about=about, notes=notes, source="archive", loads=loads)


BATCH = {"x": {"0": "batch"}, "y": {"0": {"name": "batch", "min": 2}}}

CASES = (
    healthy("linear"),
    healthy("dynamic", "A06 range", declared=[{"0": "batch"}, {"0": "batch"}]),
    healthy("derived"),
    healthy("counter", "A08 buffer-mutation"),
    healthy("counter_aten", "A08 buffer-mutation"),
    healthy("two"),
    healthy("kwargs", "A11 constant-input"),
    healthy("constants"),
    healthy("cond"),
    healthy("cond_aten"),
    healthy("mapped"),
    healthy("custom", "A03 custom-op"),
    healthy("core_aten"),
    healthy("evaluated"),
    healthy("preserved"),
    healthy("bounded"),
    healthy("number_of_a_size"),
    healthy("complex_numbers"),
    healthy("lowered"),
    broken("dialect_fits"),
    broken("object_there"),
    archive("as_saved"),
    # The graph
    broken("val_missing", "G01 val-missing", about="add"),
    broken("placeholder_without_val", "G01 val-missing", about="x"),
    broken("val_kind", "G02 val-kind", about="add"),
    broken("operator_kind", "G03 operator-kind", about="add"),
    broken("not_functional", "G04 not-functional", "A08 input-mutation", about="add"),
    archive("not_functional", "G04 not-functional", "A08 input-mutation", about="add"),
    broken("call_module", "G05 call-module", about="part"),
    broken("call_method", "G05 call-method", about="relu"),
    broken("attribute_absent", "G06 attribute-absent", about="true_graph_0"),
    broken("attribute_name", "G06 attribute-name"),
    broken("attribute_type", "G07 attribute-type", about="weight"),
    broken("attribute_type_below", "G07 attribute-type", about="thing"),
    broken("lowered_module", "G08 lowered-module", about="lowered_module_0"),
    broken("lint_order", "G09 order", about="mul"),
    broken("lint_foreign", "G09 foreign", about="add"),
    broken("lint_name_twice", "G09 name-twice", "S11 output-order", about="add"),
    broken("lint_other", "G03 operator-kind", "G09 other"),
    archive("dialect", "G10 dialect-unknown", about="EDGE", loads=False),
    broken("dialect_operator", "G11 dialect-refuses", about="mul"),
    broken("dialect_graph", "G11 dialect-refuses"),
    broken("refused_for_other_reasons", "G12 verifier-refuses"),
    broken(
        "several", "G01 val-missing", "G04 not-functional", "S03 absent", "S09 output-count", "A08 parameter-mutation"
    ),
    # The signature
    broken("input_count", "S01 input-count", about="y"),
    broken("input_name", "S02 input-name", about="x"),
    archive("inputs_swapped", "S02 input-name", about="x"),
    broken("parameter_not_tensor", "S03 not-tensor", about="p_body_weight"),
    broken("parameter_no_target", "S03 no-target"),
    broken("parameter_absent", "S03 absent", about="body.wait"),
    archive("weight_renamed", "S03 absent", about="body.wait"),
    broken("parameter_is_tensor", "S03 not-parameter", about="body.weight"),
    broken("buffer_not_tensor", "S04 not-tensor"),
    broken("buffer_no_target", "S04 no-target"),
    broken("buffer_no_persistence", "S04 no-persistence", about="scale"),
    broken("buffer_absent", "S04 absent", about="skale"),
    broken("buffer_unwanted", "S04 unwanted", about="scale"),
    broken("constant_not_tensor", "S05 not-tensor"),
    broken("constant_no_target", "S05 no-target"),
    broken("constant_absent", "S05 absent", about="lifted_tensor_9"),
    broken("object_not_object", "S06 not-object"),
    broken("object_no_target", "S06 no-target"),
    broken("object_absent", "S06 absent", about="queue"),
    broken("not_token", "S07 not-token"),
    broken("input_kind", "S08 input-kind"),
    broken("output_count", "S09 output-count"),
    broken("mutated_buffer_unknown", "S10 buffer", about="stops"),
    archive("buffer_renamed", "S10 buffer", about="stops"),
    broken("mutated_parameter_unknown", "S10 parameter", "A08 parameter-mutation", about="weight"),
    broken("mutated_input_unknown", "S10 user-input", "A08 input-mutation"),
    broken("mutation_stray", "S10 stray", "S11 output-order"),
    broken("output_order", "S11 output-order", about="mul"),
    archive("outputs_swapped", "S11 output-order"),
    broken("module_call_input", "S12 input", about="gone"),
    broken("module_call_output", "S12 output", about="gone"),
    broken("no_output_node", "S13 no-output-node"),
    broken("not_a_tuple", "S13 not-a-tuple"),
    # What makes AOTInductor fail later
    archive("mixed_devices", "A01 mixed-device", "A12 refused", about="y"),
    broken("no_shim", "A02 no-shim", about="aten.linalg_eig.default"),
    broken("shim_of_another_device", "A02 undeclared"),
    broken("custom_without_fake", "A03 no-fake", about="zoolate::no_fake", notes=("A03 custom-op",)),
    broken("custom_without_kernel", "A03 no-kernel", about="zoolate::no_kernel", notes=("A03 custom-op",)),
    broken("unbounded", "A04 no-bound", about="u0"),
    broken("unbounded_by_nature", notes=("A04 open-size",)),
    broken("specialized", "A05 declared", about="args[1].shape[0]", declared=BATCH),
    broken("specialized", notes=("A05 hint",)),
    broken("specialized", notes=("A05 automatic",), declared={"y": ["auto", None]}),
    archive("empty_range", "A06 empty"),
    archive("one_value", "A06 one-value", about="args[0].shape[0]"),
    archive("example_outside", "A06 example-outside"),
    broken("dropout_on", "A07 batch-norm", "A07 dropout", about="batch_norm"),
    broken("dropout_on_aten", "A07 batch-norm", "A07 dropout"),
    broken("written", "A08 input-mutation", about="args[0]"),
    broken("written_aten", "A08 input-mutation", about="args[0]"),
    broken("parameter_written", "A08 parameter-mutation", about="w"),
    broken("parameter_written_aten", "A08 parameter-mutation", about="w"),
    broken("large", "A09 large-constants", about="w"),
    broken("dtype_between", "A10 unsupported"),
    broken("dtype_of_input", "A10 unsupported-input", about="x"),
    broken("number", "A11 symbolic-input", about="args[1]"),
    broken("custom_object", "A11 object-input", about="args[1]"),
    # Loading
    archive("json", "L01 json", loads=False),
    archive("node", "L01 node", loads=False),
    archive("program", "L01 program", loads=False),
    archive("operator", "L02 operator-missing", about="zoogone::scale", notes=("A03 custom-op",)),
    archive("weights", "L03 weights", "S03 absent", "S04 absent"),
    archive("constants_gone", "L03 constants", "S05 absent"),
    archive("sample_inputs", "L03 sample-inputs"),
    archive("schema", "L04 schema-version"),
)
